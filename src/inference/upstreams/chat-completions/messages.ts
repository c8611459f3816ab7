import {
  type FilePart,
  isMadeElsewhere,
  markLateSystem,
  reasoningText,
  splitHead,
  textOf,
  unreadableFile,
} from '#inference/message-parts.ts'
import type {
  ContentPart,
  GenerationRequest,
  RequestItem,
  ToolCallItem,
} from '#inference/request.ts'
import type { ToolNames } from '#inference/tools.ts'
import {
  indexResults,
  markFailure,
  missingResult,
  refuseOrphans,
  type ToolResultItem,
} from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { openVendorState, type VendorState } from './vendor-state.ts'
import type { ChatMessage, ChatPart, ChatToolCall, ReasoningFields } from './wire.ts'

type Context = {
  readonly quirks: UpstreamQuirks
  readonly toolNames: ToolNames
  /** The target that reads the messages, as `ReasoningItem.sealedBy` names it. */
  readonly targetName: string
}

type MessageItem = Extract<RequestItem, { type: 'message' }>

/** The items of the assistant between two items of other roles; they become one message. */
type Turn = VendorState & { reasoning: string[]; texts: string[]; calls: ToolCallItem[] }

type Conversation = Context & {
  readonly messages: ChatMessage[]
  readonly results: Map<string, ToolResultItem[]>
  /** Late system messages that precede the next user message. */
  lateSystem: ChatPart[]
  /** Null between two turns. */
  turn: Turn | null
}

/**
 * Converts items to messages: one system message at the head, each assistant turn as one message
 * with its tool calls, and their results directly after it.
 */
export function encodeMessages(request: GenerationRequest, context: Context): ChatMessage[] {
  const { head, rest } = splitHead(request.items)
  const conversation: Conversation = {
    ...context,
    messages: [],
    results: indexResults(rest),
    lateSystem: [],
    turn: null,
  }
  const { messages, results } = conversation
  const { instructions } = request
  const system = joinTexts([instructions ?? '', ...head.map(({ parts }) => textOf(parts))])
  if (system !== '') {
    const isDeveloper = instructions === null && head.every(({ role }) => role === 'developer')
    const role = isDeveloper && context.quirks.developerRole ? 'developer' : 'system'
    messages.push({ role, content: system })
  }
  for (const item of rest) addItem(conversation, item)
  endTurn(conversation)
  flushLateSystem(conversation)
  refuseOrphans(results)
  return messages
}

function addItem(conversation: Conversation, item: RequestItem): void {
  const { targetName } = conversation
  if (item.type === 'native') return
  if (item.type === 'reasoning') {
    // Reasoning returns to its maker only; where the maker is unknown, it may be this one.
    if (isMadeElsewhere(item, targetName)) return
    const turn = openTurn(conversation)
    turn.reasoning.push(reasoningText(item))
    if (item.sealedBy === targetName) openVendorState(item.sealed ?? '', turn)
  } else if (item.type === 'tool-call') {
    openTurn(conversation).calls.push(item)
  } else if (item.type === 'message' && item.role === 'assistant') {
    openTurn(conversation).texts.push(textOf(item.parts))
  } else {
    endTurn(conversation)
    if (item.type === 'message') addMessage(conversation, item)
  }
}

function openTurn(conversation: Conversation): Turn {
  conversation.turn ??= { reasoning: [], texts: [], calls: [], details: [], extras: [] }
  return conversation.turn
}

function endTurn(conversation: Conversation): void {
  const { messages, results, quirks, toolNames, turn } = conversation
  if (turn === null) return
  conversation.turn = null
  const content = joinTexts(turn.texts)
  // Reasoning without an answer or a call needs no message.
  if (content === '' && turn.calls.length === 0) return
  flushLateSystem(conversation)
  const reasoning = joinTexts(turn.reasoning)
  const { details, extras } = turn
  const extraOf = (callId: string | null) => {
    const found = extras.find((extra) => extra.callId === callId)
    return found === undefined ? {} : { extra_content: found.extra }
  }
  const calls = turn.calls.map((call) => ({
    ...encodeCall(call, toolNames),
    ...extraOf(call.callId),
  }))
  messages.push({
    role: 'assistant',
    content,
    ...(reasoning === '' ? {} : reasoningFields(reasoning, quirks)),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...extraOf(null),
  })
  const attachments: ChatPart[] = []
  for (const call of turn.calls) {
    const result = results.get(call.callId)?.shift()
    const text = result === undefined ? missingResult(call) : toolResultText(markFailure(result))
    messages.push({ role: 'tool', tool_call_id: call.callId, content: text })
    if (result !== undefined) attachments.push(...encodeAttachments(call, result, quirks))
  }
  if (attachments.length > 0) messages.push({ role: 'user', content: attachments })
}

/** Chat templates read either field; which ones is a quirk of the upstream. */
function reasoningFields(reasoning: string, quirks: UpstreamQuirks): ReasoningFields {
  const fields: ReasoningFields = {}
  for (const name of quirks.reasoningFields) fields[name] = reasoning
  return fields
}

function encodeCall(call: ToolCallItem, toolNames: ToolNames): ChatToolCall {
  const text = call.form === 'custom' ? JSON.stringify({ input: call.arguments }) : call.arguments
  return {
    id: call.callId,
    type: 'function',
    function: { name: toolNames.wireName(call), arguments: text.trim() === '' ? '{}' : text },
  }
}

function addMessage(conversation: Conversation, item: MessageItem): void {
  const { messages, quirks } = conversation
  if (item.role === 'user') {
    const parts = item.parts.map((part) => encodePart(part, quirks))
    const { lateSystem } = conversation
    const content = joinContent(lateSystem.length === 0 ? parts : [...lateSystem, ...parts])
    conversation.lateSystem = []
    messages.push({ role: 'user', content })
    return
  }
  const text = textOf(item.parts)
  if (quirks.lateSystemMessages) {
    const isDeveloper = item.role === 'developer' && quirks.developerRole
    messages.push({ role: isDeveloper ? 'developer' : 'system', content: text })
  } else if (text !== '') {
    addLateSystem(conversation, markLateSystem(text))
  }
}

/**
 * Adds a system message after the head for templates that accept none there: it joins its
 * neighbours, never the head, because a changed head would invalidate the upstream's prompt cache.
 * It also joins tool results instead of forming a new user message after them: many templates drop
 * the reasoning that precedes the last user message.
 */
function addLateSystem(conversation: Conversation, text: string): void {
  const { messages } = conversation
  const last = messages.at(-1)
  if (last?.role === 'user') {
    const before = typeof last.content === 'string' ? textParts(last.content) : last.content
    const content = joinContent([...before, { type: 'text', text }])
    messages.splice(-1, 1, { ...last, content })
  } else if (last?.role === 'tool') {
    messages.splice(-1, 1, { ...last, content: joinTexts([last.content, text]) })
  } else {
    conversation.lateSystem.push({ type: 'text', text })
  }
}

/** No user message follows: the late system messages become one. */
function flushLateSystem(conversation: Conversation): void {
  const { lateSystem, messages } = conversation
  conversation.lateSystem = []
  if (lateSystem.length > 0) messages.push({ role: 'user', content: joinContent(lateSystem) })
}

function textParts(text: string): ChatPart[] {
  return text === '' ? [] : [{ type: 'text', text }]
}

function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join('\n\n')
}

/** Many servers reject a list of parts where a string would do. */
function joinContent(parts: readonly ChatPart[]): string | ChatPart[] {
  if (parts.some(({ type }) => type !== 'text')) return [...parts]
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n\n')
}

function encodePart(part: ContentPart, quirks: UpstreamQuirks): ChatPart {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { type: 'text', text: part.text }
    case 'image': {
      const detail = part.detail === 'original' ? 'high' : part.detail
      return {
        type: 'image_url',
        image_url: { url: part.url, ...(detail === null ? {} : { detail }) },
      }
    }
    case 'file':
      return encodeFile(part, quirks)
  }
}

function encodeFile(part: FilePart, quirks: UpstreamQuirks): ChatPart {
  const data = part.data ?? (part.url?.startsWith('data:') ? part.url : null)
  if (!quirks.files || data === null) throw unreadableFile(part, quirks.files)
  const filename = part.filename === null ? {} : { filename: part.filename }
  return { type: 'file', file: { file_data: data, ...filename } }
}

/** The images and files of a tool result; role `tool` accepts only text. */
function encodeAttachments(
  call: ToolCallItem,
  result: ToolResultItem,
  quirks: UpstreamQuirks,
): ChatPart[] {
  const parts = result.parts.filter((part) => part.type === 'image' || part.type === 'file')
  if (parts.length === 0) return []
  return [
    { type: 'text', text: `[Returned by the tool ${call.name}]` },
    ...parts.map((part) => encodePart(part, quirks)),
  ]
}

function toolResultText(parts: readonly ContentPart[]): string {
  const texts = parts.flatMap((part) => ('text' in part ? [part.text] : []))
  if (texts.length < parts.length) texts.push('[See the next message for what was returned.]')
  return texts.join('\n')
}
