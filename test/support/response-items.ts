import { expect } from 'bun:test'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { Frame } from './response-frames.ts'

/** Validates the frames of one output item, from `added` to `done`. */

/** Returns the final item. */
export function checkItem(frames: readonly Frame[]): JsonObject {
  const added = object(frames[0] ?? {}, 'item')
  const done = object(frames.at(-1) ?? {}, 'item')
  const inner = frames.slice(1, -1)
  expect(done['type'], 'the type of an item stays').toBe(added['type'])
  checkIdentity(done)
  switch (done['type']) {
    case 'message':
      checkMessage(inner, added, done)
      break
    case 'reasoning':
      checkReasoning(inner, added, done)
      break
    case 'function_call':
      checkCall(inner, { added, done, stem: 'function_call_arguments', field: 'arguments' })
      break
    case 'custom_tool_call':
      checkCall(inner, { added, done, stem: 'custom_tool_call_input', field: 'input' })
      break
    case 'mcp_call':
      checkMcpCall(inner, added, done)
      break
    default:
      checkHostedItem(inner, done)
  }
  return done
}

/** The joined text of the deltas of an item, whichever field holds it. */
export function textOfItem(item: JsonObject): string {
  const { arguments: args, input, summary, content } = item
  if (typeof args === 'string') return args
  if (typeof input === 'string') return input
  const parts = item['type'] === 'reasoning' ? list(summary) : list(content)
  return parts.map((part) => part['text'] ?? part['refusal'] ?? '').join('')
}

/** The text of the deltas among these frames. */
export function joinDeltas(frames: readonly Frame[]): string {
  return frames
    .filter(isDelta)
    .map((frame) => frame['delta'])
    .join('')
}

/** Items with a unique `call_id`. */
const answered = new Set(['function_call', 'custom_tool_call', 'shell_call', 'shell_call_output'])

function checkIdentity(item: JsonObject): void {
  expect(item['id'], 'an item has an id').toBeString()
  expect(item['id']).not.toBe('')
  if (!answered.has(String(item['type']))) return
  expect(item['call_id'], 'a call has the id under which it is answered').toBeString()
  expect(item['call_id']).not.toBe('')
}

function checkMessage(inner: readonly Frame[], added: JsonObject, done: JsonObject): void {
  expect(added).toEqual({ ...done, status: 'in_progress', role: 'assistant', content: [] })
  expect(done['status']).toBeOneOf(['completed', 'incomplete'])
  expectOrder(
    inner,
    /^content_part\.added (((output_text\.delta|output_text\.annotation\.added) )*output_text\.done|(refusal\.delta )*refusal\.done) content_part\.done$/,
  )
  for (const frame of inner) expect(frame['content_index'], frame.type).toBe(0)
  const part = object(inner.at(-1) ?? {}, 'part')
  expect(done['content']).toEqual([part])
  const field = part['type'] === 'refusal' ? 'refusal' : 'text'
  const text = joinDeltas(inner)
  expect(part[field]).toBe(text)
  expect(inner.at(-2)?.[field]).toBe(text)
  expect(object(inner[0] ?? {}, 'part')).toMatchObject({ type: part['type'], [field]: '' })
  if (field === 'refusal') return
  const citations = inner.filter(({ type }) => type.endsWith('annotation.added'))
  expect(citations.map((frame) => frame['annotation_index'])).toEqual([...citations.keys()])
  expect<unknown>(citations.map((frame) => frame['annotation'])).toEqual(part['annotations'])
  const logprobs = inner.filter(isDelta).flatMap((frame) => frame['logprobs'])
  expect<unknown>([part['logprobs'], inner.at(-2)?.['logprobs']]).toEqual([logprobs, logprobs])
}

function checkReasoning(inner: readonly Frame[], added: JsonObject, done: JsonObject): void {
  expect(added['summary']).toEqual([])
  expectOrder(
    inner,
    /^((^| )reasoning_summary_part\.added( reasoning_summary_text\.delta)* reasoning_summary_text\.done reasoning_summary_part\.done)*$/,
  )
  const summary: unknown[] = []
  let from = 0
  for (const [at, frame] of inner.entries()) {
    expect(frame['summary_index']).toBe(summary.length)
    if (!frame.type.endsWith('part.done')) continue
    const text = joinDeltas(inner.slice(from, at))
    expect(inner[at - 1]?.['text']).toBe(text)
    expect(frame['part']).toEqual({ type: 'summary_text', text })
    summary.push(frame['part'])
    from = at + 1
  }
  expect(done['summary']).toEqual(summary)
}

function checkCall(
  inner: readonly Frame[],
  call: { added: JsonObject; done: JsonObject; stem: string; field: string },
): void {
  const { added, done, stem, field } = call
  expect(added).toEqual({ ...done, status: 'in_progress', [field]: '' })
  expect(done['status']).toBeOneOf(['completed', 'incomplete'])
  expectOrder(inner, new RegExp(`^(${stem}\\.delta )*${stem}\\.done$`))
  const text = joinDeltas(inner)
  expect([inner.at(-1)?.[field], done[field]]).toEqual([text, text])
}

function checkMcpCall(inner: readonly Frame[], added: JsonObject, done: JsonObject): void {
  for (const field of ['name', 'server_label']) expect(added[field]).toBe(done[field])
  const pieces = inner.filter(({ type }) => type.startsWith('response.mcp_call_arguments.'))
  checkStages(
    inner.filter((frame) => !pieces.includes(frame)),
    'mcp_call',
  )
  if (pieces.length === 0) return
  const isWhole = done['status'] !== 'incomplete'
  expectOrder(
    pieces,
    isWhole
      ? /^(mcp_call_arguments\.delta )*mcp_call_arguments\.done$/
      : /^( ?mcp_call_arguments\.delta)*( ?mcp_call_arguments\.done)?$/,
  )
  const text = `${added['arguments']}${joinDeltas(pieces)}`
  expect(done['arguments']).toBe(text)
  for (const piece of pieces.filter((frame) => !isDelta(frame))) {
    expect(piece['arguments']).toBe(text)
  }
}

/** The events of each kind of item that strict clients know. */
const stages: Readonly<Record<string, readonly string[]>> = {
  web_search_call: ['in_progress', 'searching', 'completed'],
  file_search_call: ['in_progress', 'searching', 'completed'],
  code_interpreter_call: ['in_progress', 'interpreting', 'completed'],
  image_generation_call: ['in_progress', 'generating', 'completed'],
  mcp_call: ['in_progress', 'completed', 'failed'],
  mcp_list_tools: ['in_progress', 'completed', 'failed'],
}

/** Their other events, which carry content. */
const contents: Readonly<Record<string, RegExp>> = {
  code_interpreter_call: /^response\.code_interpreter_call_code\.(delta|done)$/,
  image_generation_call: /^response\.image_generation_call\.partial_image$/,
  shell_call: /^response\.shell_call_command\.(added|delta|done)$/,
  shell_call_output: /^response\.shell_call_output_content\.(delta|done)$/,
}

function checkHostedItem(inner: readonly Frame[], done: JsonObject): void {
  const type = String(done['type'])
  checkStages(inner, type)
  if (type === 'mcp_list_tools') expect(done['tools']).toBeArray()
  if (type === 'compaction') expect(done['encrypted_content']).toBeString()
  if (type === 'mcp_approval_request') expect(done['arguments']).toBeString()
}

function checkStages(inner: readonly Frame[], type: string): void {
  for (const frame of inner) {
    if (contents[type]?.test(frame.type)) continue
    expect(stages[type]?.map((stage) => `response.${type}.${stage}`) ?? []).toContain(frame.type)
  }
}

function expectOrder(frames: readonly Frame[], order: RegExp): void {
  expect(frames.map(({ type }) => type.replace('response.', '')).join(' ')).toMatch(order)
}

function isDelta({ type }: Frame): boolean {
  return type.endsWith('.delta')
}

function object(parent: JsonObject, field: string): JsonObject {
  const value = parent[field]
  if (!isRecord(value)) throw new Error(`${field} is no object in ${JSON.stringify(parent)}`)
  return value
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
