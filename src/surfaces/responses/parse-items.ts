import { quote } from '#api/read-object.ts'
import type { RequestItem, ToolCallItem } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { StoredItem } from '#responses/response.ts'
import type { Seals } from '#sealing/seals.ts'
import { applyCompaction } from './compacted-context.ts'
import { type History, isReference } from './history.ts'
import { parseContent } from './parse-content.ts'
import { HostedItems } from './parse-hosted-items.ts'
import { parseCompaction, parseReasoning } from './parse-sealed-items.ts'
import { invalidField, readObject } from './read-object.ts'
import {
  customToolCallItem,
  functionCallItem,
  functionCallOutputItem,
  itemReference,
  messageItem,
} from './schema/input-items.ts'
import { toStoredItem, toStoredMessage } from './stored-item.ts'

/** Items in the form for the model, and what they say about hosted tools. */
type ParsedItems = ReturnType<HostedItems['finish']> & {
  /** The input alone, in the form that is stored; references are replaced by their items. */
  stored: readonly StoredItem[]
  /** The types of unknown items, each once. */
  ignored: readonly string[]
  /** Whether the input ends with a `compaction_trigger`. */
  compactsNow: boolean
}

/**
 * The calls before an item by call id. `ignored`: the call was skipped, so its output is as well;
 * `native`: its output is an item of the upstream's own tool too.
 */
type CallForms = Map<string, ToolCallItem['form'] | 'ignored' | 'native'>

/** Items of tools that upstreams of this protocol run, or that clients run for them. */
const nativeItemTypes: ReadonlySet<string> = new Set([
  'additional_tools',
  'apply_patch_call',
  'apply_patch_call_output',
  'code_interpreter_call',
  'computer_call',
  'computer_call_output',
  'image_generation_call',
  'local_shell_call',
  'local_shell_call_output',
  'program',
  'program_output',
  'shell_call',
  'shell_call_output',
  'tool_search_call',
  'tool_search_output',
  'web_search_call',
])

type ItemContext = { path: string; calls: CallForms; seals: Seals }

/** Parses the history and `input`. Throws an `AppError` that names the first invalid item. */
export function parseItems(
  input: string | readonly unknown[],
  { history, seals, itemsMax }: { history: History; seals: Seals; itemsMax: number },
): ParsedItems {
  if (input.length === 0 && history.items.length === 0) {
    throw invalidField('input', 'must not be empty')
  }
  const values = typeof input === 'string' ? (input === '' ? [] : [toStoredMessage(input)]) : input
  if (values.length + history.items.length > itemsMax) {
    throw invalidField('input', `must not have more than ${itemsMax} items, including its history`)
  }
  const calls: CallForms = new Map()
  let items: RequestItem[] = []
  const ignored = new Set<string>()
  const hosted = new HostedItems()
  const add = (item: StoredItem, path: string) => {
    const hostedItems = hosted.take(item, path)
    if (hostedItems !== null) {
      items.push(...hostedItems)
      return
    }
    if (item.type === 'compaction') {
      items = applyCompaction(items, parseCompaction(item, path, seals.compaction))
      for (const each of items) if (each.type === 'tool-call') calls.set(each.callId, each.form)
      return
    }
    const parsed = parseItem(item, { path, calls, seals })
    if (parsed === 'unknown') ignored.add(item.type)
    else if (parsed !== 'empty') items.push(parsed)
  }
  history.items.forEach((item, index) => {
    add(item, `history[${index}]`)
  })
  const stored: StoredItem[] = []
  values.forEach((value, index) => {
    const path = `input[${index}]`
    const item = resolveItem(value, path, history)
    const isRepeated = isReference(value) && history.items.some(({ id }) => id === item.id)
    if (isRepeated) return
    add(item, path)
    stored.push(item)
  })
  if (items.every(({ type }) => type === 'native')) {
    throw invalidField('input', 'has no item for a model')
  }
  // A trigger before the end of the input is followed by its compaction.
  const compactsNow = stored.at(-1)?.type === 'compaction_trigger'
  return { ...hosted.finish(items), stored, ignored: [...ignored], compactsNow }
}

/** The item with its type and id, or the stored item that it refers to. */
function resolveItem(value: unknown, path: string, history: History): StoredItem {
  if (!isRecord(value)) throw invalidField(path, 'must be an object')
  if (!isReference(value)) return toStoredItem(readItemType(value, path), value)
  const { id } = readObject(itemReference, value, path)
  const named = history.referable.get(id)
  if (named !== undefined) return named
  throw new AppError(
    'not_found',
    `Item with id ${quote(id)} not found. Items of responses with store: false and deleted items cannot be referenced; send the item itself.`,
    { param: `${path}.id` },
  )
}

function readItemType({ type = null, role = null }: JsonObject, path: string): string {
  if (typeof type === 'string' && type !== '') return type
  if (type !== null) throw invalidField(`${path}.type`, 'must be the name of an item type')
  if (role !== null) return 'message'
  throw invalidField(path, 'must have a type or a role')
}

/** Returns `unknown` for a type that is ignored, `empty` for an item without content. */
function parseItem(item: StoredItem, context: ItemContext): RequestItem | 'unknown' | 'empty' {
  const { path, calls, seals } = context
  switch (item.type) {
    case 'message':
      return parseMessage(item, path)
    case 'function_call': {
      const call = readObject(functionCallItem, item, path)
      return { ...openCall(call, 'function', calls), arguments: call.arguments }
    }
    case 'custom_tool_call': {
      const call = readObject(customToolCallItem, item, path)
      return { ...openCall(call, 'custom', calls), arguments: call.input }
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      return parseToolOutput(item, context)
    case 'reasoning':
      return parseReasoning(item, path, seals.reasoning)
    case 'compaction_trigger':
      return 'empty'
    default: {
      const callId = item['call_id']
      const isNative = nativeItemTypes.has(item.type)
      if (typeof callId === 'string' && !calls.has(callId)) {
        calls.set(callId, isNative ? 'native' : 'ignored')
      }
      return isNative ? nativeItem(item) : 'unknown'
    }
  }
}

function parseMessage(value: unknown, path: string): RequestItem | 'empty' {
  const { role, content, phase } = readObject(messageItem, value, path)
  const parts = parseContent(content, `${path}.content`)
  if (role === 'assistant') {
    // A turn that was cut off before its first token.
    if (parts.every((part) => part.type === 'text' && part.text === '')) return 'empty'
    return { type: 'message', role, parts, ...(phase === undefined ? {} : { phase }) }
  }
  if (parts.length === 0) throw invalidField(`${path}.content`, 'must not be empty')
  const refusal = parts.findIndex((part) => part.type === 'refusal')
  if (refusal !== -1) {
    throw invalidField(
      `${path}.content[${refusal}]`,
      'is a refusal, which is only allowed in assistant messages',
    )
  }
  return { type: 'message', role, parts }
}

function openCall(
  call: { call_id: string; name: string; namespace?: string; async?: boolean },
  form: ToolCallItem['form'],
  calls: CallForms,
): Omit<ToolCallItem, 'arguments'> {
  calls.set(call.call_id, form)
  return {
    type: 'tool-call',
    callId: call.call_id,
    name: call.name,
    ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
    ...(call.async === true ? { async: true } : {}),
    form,
  }
}

/** Without the id, which the upstream does not know. */
function nativeItem({ id: _, ...value }: StoredItem): RequestItem {
  return { type: 'native', value }
}

function parseToolOutput(item: StoredItem, { path, calls }: ItemContext): RequestItem | 'unknown' {
  const { call_id: callId, output } = readObject(functionCallOutputItem, item, path)
  const form = calls.get(callId)
  if (form === undefined) {
    throw invalidField(`${path}.call_id`, `is ${quote(callId)}, but no earlier call has this id`)
  }
  // Clients return the output of some hosted tools, such as a local shell, as a function output.
  if (form === 'ignored') return 'unknown'
  if (form === 'native') return nativeItem(item)
  return { type: 'tool-result', callId, form, parts: parseContent(output, `${path}.output`) }
}
