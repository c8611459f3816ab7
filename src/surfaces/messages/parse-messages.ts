import { quote } from '#api/read-object.ts'
import type { ContentPart, RequestItem } from '#inference/request.ts'
import type { AppError } from '#lib/errors.ts'
import type { Seals } from '#sealing/seals.ts'
import { parseContent, parsePart, parseTexts, unsupportedBlock } from './parse-content.ts'
import { parseRedactedThinking, parseThinking } from './parse-thinking.ts'
import { invalidField, orRefusal, readObject, readType } from './read-object.ts'
import {
  compactionBlock,
  ignoredBlockTypes,
  toolChangeTypes,
  toolResultBlock,
  toolUseBlock,
} from './schema/input-blocks.ts'
import { message } from './schema/request.ts'
import { parseServerTool } from './server-tools.ts'
import { fromToolUseId } from './tool-id.ts'

export type ParsedMessages = {
  items: readonly RequestItem[]
  /** Whether the last message is the beginning of the response. */
  prefilled: boolean
  /** The types of ignored blocks. */
  ignored: ReadonlySet<string>
}

/** The state of parsing a conversation. */
type ConversationState = {
  readonly items: RequestItem[]
  readonly toolUses: Map<string, 'open' | 'resolved'>
  /** The ids of calls of server tools without a result so far. */
  readonly pendingServerTools: Set<string>
  readonly seals: Seals
  /** The user turn in progress; consecutive user messages are one turn. */
  userTurn: UserTurn
  readonly ignored: Set<string>
  /** Why only an upstream of this protocol can get the conversation. */
  readonly refusals: AppError[]
}

type UserTurn = { readonly results: RequestItem[]; readonly parts: ContentPart[] }
type Content = string | readonly unknown[]

/**
 * Parses `messages` into items. Consecutive messages of one role are one turn. In a user turn the tool
 * results come first, as every upstream requires. A conversation may begin with the assistant, since
 * it can be the end of a longer one. Throws an `AppError` that names the first invalid block.
 */
export function parseMessages(
  values: readonly unknown[],
  options: { seals: Seals; itemsMax: number; refusals: AppError[] },
): ParsedMessages {
  const { seals, itemsMax, refusals } = options
  if (values.length > itemsMax) throw tooMany(itemsMax)
  const state: ConversationState = {
    items: [],
    toolUses: new Map(),
    pendingServerTools: new Set(),
    seals,
    userTurn: { results: [], parts: [] },
    ignored: new Set(),
    refusals,
  }
  let lastRole = ''
  for (let index = 0; index < values.length; index++) {
    const { role, content } = readObject(message, values[index], `messages.${index}`)
    const path = `messages.${index}.content`
    if (role === 'user') {
      addUserMessage(state, content, path)
    } else {
      endUserTurn(state)
      const add = role === 'assistant' ? addAssistantMessage : addSystemMessage
      add(state, content, path)
    }
    lastRole = role
  }
  endUserTurn(state)
  const pending = state.pendingServerTools
  const isPending = (item: RequestItem) => item.type === 'tool-call' && pending.has(item.callId)
  const items = pending.size === 0 ? state.items : state.items.filter((item) => !isPending(item))
  if (items.length > itemsMax) throw tooMany(itemsMax)
  const last = items.at(-1)
  if (last === undefined && refusals.length > 0)
    return { items, prefilled: false, ignored: state.ignored }
  if (last === undefined) throw invalidField('messages', 'must have content for a model')
  const prefilled = lastRole === 'assistant' && last.type === 'message'
  return { items, prefilled, ignored: state.ignored }
}

function tooMany(itemsMax: number) {
  return invalidField('messages', `must not have more than ${itemsMax} messages, calls and results`)
}

// User messages

function addUserMessage(
  { userTurn, toolUses, ignored, refusals }: ConversationState,
  content: Content,
  path: string,
): void {
  if (typeof content === 'string') {
    userTurn.parts.push(...parseContent(content, path))
    return
  }
  for (const [index, block] of content.entries()) {
    const at = `${path}.${index}`
    const type = readType(block, at)
    if (type === 'tool_result') {
      userTurn.results.push(parseToolResult(block, at, { toolUses, refusals }))
    } else if (isIgnoredBlock(type)) {
      ignored.add(type)
    } else {
      const parts = orRefusal(
        refusals,
        [],
        () => parsePart(type, block, at) ?? refuseBlock(type, at),
      )
      userTurn.parts.push(...parts)
    }
  }
}

function endUserTurn(state: ConversationState): void {
  const { results, parts } = state.userTurn
  if (results.length + parts.length === 0) return
  state.items.push(...results)
  if (parts.length > 0) state.items.push({ type: 'message', role: 'user', parts })
  state.userTurn = { results: [], parts: [] }
}

function parseToolResult(
  block: unknown,
  path: string,
  { toolUses, refusals }: Pick<ConversationState, 'toolUses' | 'refusals'>,
): RequestItem {
  const {
    tool_use_id: id,
    content = '',
    is_error: isError,
  } = readObject(toolResultBlock, block, path)
  if (toolUses.get(id) !== 'open') {
    const problem = toolUses.has(id)
      ? 'which already has a result'
      : 'but no earlier tool_use has this id'
    throw invalidField(`${path}.tool_use_id`, `is ${quote(id)}, ${problem}`)
  }
  toolUses.set(id, 'resolved')
  const parts = orRefusal(refusals, [], () => parseContent(content, `${path}.content`))
  const callId = fromToolUseId(id)
  return { type: 'tool-result', callId, form: 'function', parts, ...(isError ? { isError } : {}) }
}

const assistantBlocks = ['tool_use', 'thinking', 'redacted_thinking', 'server_tool_use']

function refuseBlock(type: string, path: string): never {
  if (!assistantBlocks.includes(type)) throw unsupportedBlock(type, path)
  throw invalidField(`${path}.type`, `is "${type}", which is only allowed in assistant messages`)
}

function isIgnoredBlock(type: string): boolean {
  return ignoredBlockTypes.some((ignored) => ignored === type)
}

// Assistant messages

function addAssistantMessage(state: ConversationState, content: Content, path: string): void {
  if (typeof content === 'string') {
    for (const part of parseContent(content, path))
      if ('text' in part) addAssistantText(state, part.text, true)
    return
  }
  for (const [index, block] of content.entries()) {
    const at = { path: `${path}.${index}`, isFirst: index === 0 }
    orRefusal(state.refusals, undefined, () => addAssistantBlock(state, block, at))
  }
}

function addAssistantBlock(
  state: ConversationState,
  block: unknown,
  { path, isFirst }: { path: string; isFirst: boolean },
): void {
  const { items, pendingServerTools, seals, ignored } = state
  const type = readType(block, path)
  if (isIgnoredBlock(type)) {
    ignored.add(type)
    return
  }
  const own =
    parseAssistantBlock(state, type, { block, path }) ??
    parseServerTool(type, { block, path }, { pending: pendingServerTools, seal: seals.search })
  if (own !== null) {
    items.push(...own)
    return
  }
  if (type === 'tool_result') {
    throw invalidField(`${path}.type`, 'is "tool_result", which is only allowed in user messages')
  }
  const parts = parsePart(type, block, path)
  if (parts === null) throw unsupportedBlock(type, path)
  for (const part of parts) {
    if (!('text' in part)) {
      throw invalidField(path, `is ${part.type} content, which is only allowed in user messages`)
    }
    addAssistantText(state, part.text, isFirst)
  }
}

/** Parses the blocks that are allowed in assistant messages only; null for any other type. */
function parseAssistantBlock(
  { seals, toolUses }: ConversationState,
  type: string,
  { block, path }: { block: unknown; path: string },
): RequestItem[] | null {
  switch (type) {
    case 'thinking':
    case 'redacted_thinking': {
      const parse = type === 'thinking' ? parseThinking : parseRedactedThinking
      const item = parse(block, path, seals.reasoning)
      return item === null ? [] : [item]
    }
    case 'tool_use': {
      const { id, name, input = {} } = readObject(toolUseBlock, block, path)
      // An id may be reused once its call has a result: some gateways number the calls of each turn
      // from the start, and their conversations must be able to continue.
      if (toolUses.get(id) === 'open') {
        throw invalidField(
          `${path}.id`,
          `${quote(id)} is used twice; ids of tool_use must be unique`,
        )
      }
      toolUses.set(id, 'open')
      const args = JSON.stringify(input)
      const callId = fromToolUseId(id)
      return [{ type: 'tool-call', callId, name, form: 'function', arguments: args }]
    }
    // A summary of the earlier conversation by the responding service.
    case 'compaction': {
      const { content: text = '' } = readObject(compactionBlock, block, path)
      return text === '' ? [] : [assistantText(text)]
    }
    default:
      return null
  }
}

/** Joins adjacent texts: citations split one text into several blocks. */
function addAssistantText({ items }: ConversationState, text: string, isNewMessage: boolean): void {
  const last = items.at(-1)
  const [part] = last?.type === 'message' && last.role === 'assistant' ? last.parts : []
  const previous = !isNewMessage && part?.type === 'text' ? part.text : null
  if (previous !== null) items.pop()
  items.push(assistantText((previous ?? '') + text))
}

function assistantText(text: string): RequestItem {
  return { type: 'message', role: 'assistant', parts: [{ type: 'text', text }] }
}

// System messages

function addSystemMessage(state: ConversationState, content: Content, path: string): void {
  const texts = typeof content === 'string' ? content : withoutToolChanges(content, path)
  const text = orRefusal(state.refusals, [], () => parseTexts(texts, path)).join('\n\n')
  if (text === '') return
  state.items.push({ type: 'message', role: 'system', parts: [{ type: 'text', text }] })
}

/** Replaces them by empty texts, so that the paths of the other blocks stay correct. */
function withoutToolChanges(blocks: readonly unknown[], path: string) {
  return blocks.map((block, index) => {
    const type = readType(block, `${path}.${index}`)
    const isChange = toolChangeTypes.some((change) => change === type)
    return isChange ? { type: 'text', text: '' } : block
  })
}
