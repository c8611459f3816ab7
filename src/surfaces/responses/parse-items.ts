import type { ContentPart, RequestItem, ToolCallItem } from '#inference/request.ts'
import { assertNever } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import { parseContent } from './parse-content.ts'
import { badField, createReader, quote } from './read-object.ts'
import {
  customToolCallItem,
  functionCallItem,
  itemReference,
  messageItem,
  reasoningItem,
  textPart,
  toolOutputItem,
} from './schema.ts'

const readMessage = createReader(messageItem)
const readFunctionCall = createReader(functionCallItem)
const readCustomToolCall = createReader(customToolCallItem)
const readToolOutput = createReader(toolOutputItem)
const readReasoning = createReader(reasoningItem)
const readReference = createReader(itemReference)
const readText = createReader(textPart)

type ParsedItems = {
  items: readonly RequestItem[]
  /** The types of the items that were skipped, each once. */
  ignored: readonly string[]
}

/** The calls before an item, by call id; a skipped one is remembered, since its output is too. */
type CallForms = Map<string, ToolCallItem['form'] | 'ignored'>

type ItemContext = { path: string; calls: CallForms }

/** `input` of a request. Throws an `AppError` that names the first item at fault. */
export function parseItems(input: string | readonly unknown[], itemsMax: number): ParsedItems {
  if (input.length === 0) throw badField('input', 'must not be empty')
  if (typeof input === 'string') {
    return { items: [userMessage(input)], ignored: [] }
  }
  if (input.length > itemsMax) throw badField('input', `must not have more than ${itemsMax} items`)

  const calls: CallForms = new Map()
  const items: RequestItem[] = []
  const ignored = new Set<string>()
  for (const [index, value] of input.entries()) {
    const path = `input[${index}]`
    const type = readItemType(value, path)
    const item = parseItem(type, value, { path, calls })
    if (item === 'unknown') ignored.add(type)
    else if (item !== 'empty') items.push(item)
  }
  if (items.length === 0) throw badField('input', 'has no item that a model can be given')
  return { items, ignored: [...ignored] }
}

function userMessage(text: string): RequestItem {
  return { type: 'message', role: 'user', parts: [{ type: 'text', text }] }
}

function readItemType(value: unknown, path: string): string {
  if (!isRecord(value)) throw badField(path, 'must be an object')
  const { type = null, role = null, id = null, content = null } = value
  if (typeof type === 'string' && type !== '') return type
  if (type !== null) throw badField(`${path}.type`, 'must be the name of an item type')
  if (role !== null) return 'message'
  if (id !== null && content === null) return 'item_reference'
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
      return parseReasoning(value, context.path)
    case 'item_reference':
      throw unknownReference(value, context.path)
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

function parseReasoning(value: unknown, path: string): RequestItem | 'empty' {
  const item = readReasoning(value, path)
  const summary = readTexts(item.summary, `${path}.summary`)
  const text = readTexts(item.content, `${path}.content`).join('\n\n')
  const sealed = item.encrypted_content
  if (summary.length === 0 && text === '' && sealed === undefined) return 'empty'
  return { type: 'reasoning', summary, text, ...(sealed === undefined ? {} : { sealed }) }
}

function readTexts(parts: readonly unknown[] = [], path: string): string[] {
  return parts.map((part, index) => readText(part, `${path}[${index}]`).text)
}

function unknownReference(value: unknown, path: string): AppError {
  const { id } = readReference(value, path)
  return new AppError(
    'not_found',
    `Item with id ${quote(id)} not found: items are not persisted here. Send the item itself.`,
    { param: `${path}.id` },
  )
}

function skip(value: unknown, calls: CallForms): void {
  const callId = isRecord(value) ? value['call_id'] : undefined
  if (typeof callId === 'string' && !calls.has(callId)) calls.set(callId, 'ignored')
}

/** How much text a model would read; images, files and sealed payloads are not text. */
export function countChars(items: readonly RequestItem[]): number {
  let chars = 0
  for (const item of items) {
    switch (item.type) {
      case 'message':
      case 'tool-result':
        chars += countPartChars(item.parts)
        break
      case 'tool-call':
        chars += item.arguments.length
        break
      case 'reasoning':
        chars += item.text.length + item.summary.reduce((sum, part) => sum + part.length, 0)
        break
      default:
        assertNever(item)
    }
  }
  return chars
}

function countPartChars(parts: readonly ContentPart[]): number {
  let chars = 0
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'refusal') chars += part.text.length
  }
  return chars
}
