import type { McpHistory } from '#hosted-tools/mcp/request.ts'
import type { RequestItem, ToolCallItem } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import type { StoredItem } from '#responses/response.ts'
import type { Passage } from '#retrieval/file-search/passages.ts'
import type { Seals } from '#sealing/seals.ts'
import { quote } from '#surfaces/read-object.ts'
import { applyCompaction } from './compacted-context.ts'
import { type History, isReference } from './history.ts'
import { parseCompaction } from './parse-compaction.ts'
import { parseContent } from './parse-content.ts'
import { createHostedItems } from './parse-hosted-items.ts'
import { parseReasoning } from './parse-reasoning.ts'
import { badField, createReader } from './read-object.ts'
import {
  customToolCallItem,
  functionCallItem,
  itemReference,
  messageItem,
  toolOutputItem,
} from './schema.ts'
import { storedItem, storedText } from './stored-item.ts'

const readMessage = createReader(messageItem)
const readFunctionCall = createReader(functionCallItem)
const readCustomToolCall = createReader(customToolCallItem)
const readToolOutput = createReader(toolOutputItem)
const readReference = createReader(itemReference)

export type ParsedItems = {
  /** History and input, as a model is given them. */
  items: readonly RequestItem[]
  /** The input alone, as it is kept; references are replaced by what they name. */
  stored: readonly StoredItem[]
  /** The types of the items that were skipped, each once. */
  ignored: readonly string[]
  /** Whether the input ends with the wish to compact all that is before. */
  compactsNow: boolean
  mcpHistory: McpHistory
  /** What searches of files have found, by number. */
  found: readonly Passage[]
}

/** The calls before an item, by call id; a skipped one is remembered, since its output is too. */
type CallForms = Map<string, ToolCallItem['form'] | 'ignored'>

type ItemContext = { path: string; calls: CallForms; seals: Seals }

/** `input` of a request behind its history. Throws an `AppError` that names the first item at fault. */
export function parseItems(
  input: string | readonly unknown[],
  { history, seals, itemsMax }: { history: History; seals: Seals; itemsMax: number },
): ParsedItems {
  if (input.length === 0 && history.items.length === 0) {
    throw badField('input', 'must not be empty')
  }
  const own = typeof input === 'string' ? (input === '' ? [] : [storedText(input)]) : input
  if (own.length + history.items.length > itemsMax) {
    throw badField('input', `must not have more than ${itemsMax} items, with what it follows`)
  }
  const calls: CallForms = new Map()
  let items: RequestItem[] = []
  const ignored = new Set<string>()
  const hosted = createHostedItems()
  const take = (type: string, value: unknown, path: string) => {
    const taken = hosted.take(type, value, path)
    if (taken !== null) {
      items.push(...taken)
      return
    }
    if (type === 'compaction') {
      items = applyCompaction(items, parseCompaction(value, path, seals.compaction))
      for (const item of items) if (item.type === 'tool-call') calls.set(item.callId, item.form)
      return
    }
    const item = parseItem(type, value, { path, calls, seals })
    if (item === 'unknown') ignored.add(type)
    else if (item !== 'empty') items.push(item)
  }
  for (const [index, item] of history.items.entries()) take(item.type, item, `history[${index}]`)
  const inHistory = new Set(history.items.map(({ id }) => id))
  const stored: StoredItem[] = []
  for (const [index, value] of own.entries()) {
    const item = resolveItem(value, `input[${index}]`, history)
    const isRepeated = isReference(value) && inHistory.has(item.id)
    if (isRepeated) continue
    take(item.type, item, `input[${index}]`)
    stored.push(item)
  }
  if (items.length === 0) throw badField('input', 'has no item that a model can be given')
  // One that is not the last was followed by its compaction.
  const compactsNow = stored.at(-1)?.type === 'compaction_trigger'
  const { items: answered, history: mcpHistory } = hosted.finish(items)
  return {
    items: answered,
    stored,
    ignored: [...ignored],
    compactsNow,
    mcpHistory,
    found: hosted.found(),
  }
}

/** An item with its type and id, or the item that it names. */
function resolveItem(value: unknown, path: string, history: History): StoredItem {
  if (!isReference(value)) {
    const type = readItemType(value, path)
    return storedItem(type, isRecord(value) ? value : {})
  }
  const { id } = readReference(value, path)
  const named = history.named.get(id)
  if (named !== undefined) return named
  throw new AppError(
    'not_found',
    `Item with id ${quote(id)} not found: it was never stored (as with store set to false), or it is gone. Send the item itself.`,
    { param: `${path}.id` },
  )
}

function readItemType(value: unknown, path: string): string {
  if (!isRecord(value)) throw badField(path, 'must be an object')
  const { type = null, role = null } = value
  if (typeof type === 'string' && type !== '') return type
  if (type !== null) throw badField(`${path}.type`, 'must be the name of an item type')
  if (role !== null) return 'message'
  throw badField(path, 'must have a type or a role')
}

/** `unknown`: skipped, since we do not know it; `empty`: nothing in it to pass on. */
function parseItem(
  type: string,
  value: unknown,
  context: ItemContext,
): RequestItem | 'unknown' | 'empty' {
  switch (type) {
    case 'message':
      return parseMessage(value, context.path)
    case 'function_call':
      return parseFunctionCall(value, context)
    case 'custom_tool_call':
      return parseCustomToolCall(value, context)
    case 'function_call_output':
    case 'custom_tool_call_output':
      return parseToolOutput(value, context)
    case 'reasoning':
      return parseReasoning(value, context.path, context.seals.reasoning)
    case 'compaction_trigger':
      return 'empty'
    default:
      skip(value, context.calls)
      return 'unknown'
  }
}

function parseMessage(value: unknown, path: string): RequestItem | 'empty' {
  const { role, content, phase } = readMessage(value, path)
  const parts = parseContent(content, `${path}.content`)
  if (role === 'assistant') {
    // A turn that was cut off before its first word comes back like this.
    if (parts.every((part) => part.type === 'text' && part.text === '')) return 'empty'
    return { type: 'message', role, parts, ...(phase === undefined ? {} : { phase }) }
  }
  if (parts.length === 0) throw badField(`${path}.content`, 'must not be empty')
  const refusal = parts.findIndex((part) => part.type === 'refusal')
  if (refusal !== -1) {
    throw badField(`${path}.content[${refusal}]`, 'is a refusal, which only an assistant can give')
  }
  return { type: 'message', role, parts }
}

function parseFunctionCall(value: unknown, { path, calls }: ItemContext): ToolCallItem {
  const call = readFunctionCall(value, path)
  return { ...openCall(call, 'function', calls), arguments: call.arguments }
}

function parseCustomToolCall(value: unknown, { path, calls }: ItemContext): ToolCallItem {
  const call = readCustomToolCall(value, path)
  return { ...openCall(call, 'custom', calls), arguments: call.input }
}

function openCall(
  call: { call_id: string; name: string; namespace?: string },
  form: ToolCallItem['form'],
  calls: CallForms,
): Omit<ToolCallItem, 'arguments'> {
  calls.set(call.call_id, form)
  return {
    type: 'tool-call',
    callId: call.call_id,
    name: call.name,
    ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
    form,
  }
}

function parseToolOutput(value: unknown, { path, calls }: ItemContext): RequestItem | 'unknown' {
  const { call_id: callId, output } = readToolOutput(value, path)
  const form = calls.get(callId)
  if (form === undefined) {
    throw badField(`${path}.call_id`, `is ${quote(callId)}, but no call before it has this id`)
  }
  // Clients answer some hosted tools, such as a local shell, in the form of a function.
  if (form === 'ignored') return 'unknown'
  return { type: 'tool-result', callId, form, parts: parseContent(output, `${path}.output`) }
}

function skip(value: unknown, calls: CallForms): void {
  const callId = isRecord(value) ? value['call_id'] : undefined
  if (typeof callId === 'string' && !calls.has(callId)) calls.set(callId, 'ignored')
}
