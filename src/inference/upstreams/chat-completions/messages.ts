import type {
  ContentPart,
  GenerationRequest,
  RequestItem,
  ToolCallItem,
} from '#inference/request.ts'
import { markFailure } from '#inference/tool-failure.ts'
import type { ToolNames } from '#inference/tool-names.ts'
import {
  indexResults,
  missingResult,
  refuseOrphans,
  type ToolResultItem,
} from '#inference/tool-results.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { createLateTexts, type LateTexts } from './late-texts.ts'
import {
  type ChatMessage,
  type ChatPart,
  type ChatToolCall,
  joinContent,
  type ReasoningFields,
} from './message-form.ts'

type Context = { quirks: UpstreamQuirks; toolNames: ToolNames }

type MessageItem = Extract<RequestItem, { type: 'message' }>

/** What an assistant did between two items of anybody else; it becomes one message. */
type Turn = { reasoning: string[]; texts: string[]; calls: ToolCallItem[] }

/**
 * Items in order become messages in turns: one system message at the head, each assistant turn as
 * one message with its tool calls, and their results directly behind it.
 */
export function encodeMessages(request: GenerationRequest, context: Context): ChatMessage[] {
  const { head, rest } = splitHead(request)
  const results = indexResults(rest)
  const messages: ChatMessage[] = []
  if (head.texts.length > 0) {
    messages.push({
      role: head.isDeveloper && context.quirks.developerRole ? 'developer' : 'system',
      content: head.texts.join('\n\n'),
    })
  }
  const late = createLateTexts(messages)
  let turn: Turn = { reasoning: [], texts: [], calls: [] }
  const endTurn = () => {
    encodeTurn(turn, { ...context, results, messages, late })
    turn = { reasoning: [], texts: [], calls: [] }
  }
  for (const item of rest) {
    if (item.type === 'reasoning') {
      turn.reasoning.push(item.text === '' ? item.summary.join('\n\n') : item.text)
    } else if (item.type === 'tool-call') {
      turn.calls.push(item)
    } else if (item.type === 'message' && item.role === 'assistant') {
      turn.texts.push(readText(item.parts))
    } else {
      endTurn()
      if (item.type === 'message') encodeMessage(item, { ...context, messages, late })
    }
  }
  endTurn()
  late.end()
  refuseOrphans(results)
  return messages
}

/** The instructions and the system texts that lead the input, which belong into one message. */
function splitHead(request: GenerationRequest): {
  head: { texts: string[]; isDeveloper: boolean }
  rest: readonly RequestItem[]
} {
  const texts = request.instructions === null ? [] : [request.instructions]
  let isDeveloper = request.instructions === null
  let count = 0
  for (const item of request.items) {
    if (item.type !== 'message' || (item.role !== 'system' && item.role !== 'developer')) break
    texts.push(readText(item.parts))
    isDeveloper &&= item.role === 'developer'
    count++
  }
  return {
    head: { texts: texts.filter((text) => text !== ''), isDeveloper },
    rest: request.items.slice(count),
  }
}

function encodeTurn(
  turn: Turn,
  context: Context & {
    results: Map<string, ToolResultItem[]>
    messages: ChatMessage[]
    late: LateTexts
  },
): void {
  const { messages, results, quirks, toolNames, late } = context
  const content = turn.texts.filter((text) => text !== '').join('\n\n')
  // Reasoning that led to nothing is not worth a message of its own.
  if (content === '' && turn.calls.length === 0) return
  const reasoning = turn.reasoning.filter((text) => text !== '').join('\n\n')
  late.end()
  messages.push({
    role: 'assistant',
    content,
    ...(reasoning === '' ? {} : reasoningFields(reasoning, quirks)),
    ...(turn.calls.length === 0
      ? {}
      : { tool_calls: turn.calls.map((call) => encodeCall(call, toolNames)) }),
  })
  const attachments: ChatPart[] = []
  for (const call of turn.calls) {
    const result = results.get(call.callId)?.shift()
    const content = result === undefined ? missingResult : readToolText(markFailure(result))
    messages.push({ role: 'tool', tool_call_id: call.callId, content })
    if (result !== undefined) attachments.push(...encodeAttachments(call, result, quirks))
  }
  if (attachments.length > 0) messages.push({ role: 'user', content: attachments })
}

/** Templates read either name; which ones is a quirk of the upstream. */
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

function encodeMessage(
  item: MessageItem,
  { quirks, messages, late }: Context & { messages: ChatMessage[]; late: LateTexts },
): void {
  if (item.role === 'user') {
    const parts = item.parts.map((part) => encodePart(part, quirks))
    messages.push({ role: 'user', content: joinContent([...late.take(), ...parts]) })
    return
  }
  const text = readText(item.parts)
  if (!quirks.lateSystemMessages) {
    if (text !== '') late.add(text)
    return
  }
  const isDeveloper = item.role === 'developer' && quirks.developerRole
  messages.push({ role: isDeveloper ? 'developer' : 'system', content: text })
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

function encodeFile(
  part: Extract<ContentPart, { type: 'file' }>,
  quirks: UpstreamQuirks,
): ChatPart {
  const data = part.data ?? (part.url?.startsWith('data:') ? part.url : null)
  if (quirks.files && data !== null) {
    const filename = part.filename === null ? {} : { filename: part.filename }
    return { type: 'file', file: { file_data: data, ...filename } }
  }
  const name = part.filename === null ? 'a file' : `the file ${part.filename}`
  throw new AppError(
    'invalid_request',
    quirks.files
      ? `The model cannot fetch ${name} from a URL; send its content.`
      : `The model does not take files, but the input holds ${name}.`,
    { param: 'input' },
  )
}

/** What a tool returned beside text; role `tool` takes text alone. */
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

function readToolText(parts: readonly ContentPart[]): string {
  const texts = parts.flatMap((part) => ('text' in part ? [part.text] : []))
  if (texts.length < parts.length) texts.push('[See the next message for what was returned.]')
  return texts.join('\n')
}

/** The text of a message whose role has nothing but text. */
function readText(parts: readonly ContentPart[]): string {
  return parts
    .map((part) => {
      if ('text' in part) return part.text
      throw new AppError('invalid_request', `Only a user message can hold ${part.type} content.`, {
        param: 'input',
      })
    })
    .join('')
}
