import { expect } from 'bun:test'
import { isRecord, type JsonObject } from '#lib/json.ts'

/**
 * A second opinion on the streams of `POST /v1/responses`: the order of frames as the published
 * format states it, written without anything of the renderer.
 */
export type Frame = JsonObject & { type: string }

export type CheckedStream = {
  frames: Frame[]
  /** The response of the closing frame. */
  response: JsonObject
}

/** Frames as they stand on the wire. Throws at whatever is neither a frame nor the end. */
export function readFrames(wire: string): Frame[] {
  const blocks = wire.split('\n\n')
  expect(blocks.splice(-2), 'the stream ends with [DONE] and nothing after it').toEqual([
    'data: [DONE]',
    '',
  ])
  return blocks.map(readFrame)
}

/** The frames of a stream that is still open, as far as they have arrived whole. */
export function readOpenFrames(wire: string): Frame[] {
  return wire
    .split('\n\n')
    .slice(0, -1)
    .filter((block) => block !== 'data: [DONE]')
    .map(readFrame)
}

/** Throws at the first thing that breaks the order, or that does not add up. */
export function checkStream(wire: string): CheckedStream {
  const frames = readFrames(wire)
  expect(
    frames.map((frame) => frame['sequence_number']),
    'one counter from 0',
  ).toEqual([...frames.keys()])
  const response = checkLifecycle(frames)
  const items = splitItems(withoutHeartbeats(frames))
  const output = items.map(checkItem)
  expect(response['output'], 'the closing frame repeats what the items said').toEqual(output)
  checkStatuses(response, output)
  checkHeartbeats(frames, output)
  return { frames, response }
}

/** Only the last item may be incomplete, and nothing is in a response that was completed. */
function checkStatuses(response: JsonObject, output: readonly JsonObject[]): void {
  const open = output.map(({ status }) => status === 'in_progress')
  expect(open).not.toContain(true)
  const whole = response['status'] === 'completed' ? output : output.slice(0, -1)
  expect(whole.map(({ status }) => status)).not.toContain('incomplete')
}

function readFrame(block: string): Frame {
  const match = /^event: (\S+)\ndata: (\{.*\})$/.exec(block)
  const parsed: unknown = JSON.parse(match?.[2] ?? `"not a frame: ${block.slice(0, 100)}"`)
  if (!isFrame(parsed)) throw new Error(String(parsed))
  expect(parsed.type, 'the name of the event is its type').toBe(match?.[1] ?? '')
  return parsed
}

function isFrame(value: unknown): value is Frame {
  return isRecord(value) && typeof value['type'] === 'string'
}

const lifecycle = new Set([
  'response.created',
  'response.in_progress',
  'response.completed',
  'response.incomplete',
  'response.failed',
])

/** created, in_progress …, one terminal; the same response all along. Returns its last state. */
function checkLifecycle(frames: readonly Frame[]): JsonObject {
  const types = withoutHeartbeats(frames)
    .map(({ type }) => type)
    .filter((type) => lifecycle.has(type) || type === 'error')
  expect(types.join(' ')).toMatch(
    /^response\.created response\.in_progress (response\.completed|response\.incomplete|error response\.failed)$/,
  )
  expect(frames[0]?.type).toBe('response.created')
  expect(frames[1]?.type).toBe('response.in_progress')
  expect(lifecycle.has(frames.at(-1)?.type ?? ''), 'nothing follows the terminal event').toBe(true)
  const states = frames
    .filter(({ type }) => lifecycle.has(type))
    .map((frame) => object(frame, 'response'))
  const [first, last] = [states[0], states.at(-1)]
  if (first === undefined || last === undefined) throw new Error('no response')
  expect(first['output']).toEqual([])
  for (const state of states) {
    expect([state['id'], state['created_at']]).toEqual([first['id'], first['created_at']])
  }
  for (const state of states.slice(0, -1)) {
    expect([state['status'], state['completed_at']]).toEqual(['in_progress', null])
  }
  checkTerminal(frames, last)
  return last
}

function checkTerminal(frames: readonly Frame[], response: JsonObject): void {
  const status = frames.at(-1)?.type.replace('response.', '')
  expect(response['status']).toBe(status)
  expect(typeof response['completed_at']).toBe(status === 'completed' ? 'number' : 'object')
  expect(response['incomplete_details'] !== null).toBe(status === 'incomplete')
  expect(response['error'] !== null).toBe(status === 'failed')
  if (status !== 'failed') return
  const error = frames.at(-2) ?? {}
  const { code, message, type, param } = object(response, 'error')
  expect(typeof code).toBe('string')
  expect(error, 'flat and nested').toMatchObject({
    type: 'error',
    code,
    message,
    param,
    error: { type, code, message, param },
  })
}

function withoutHeartbeats(frames: readonly Frame[]): Frame[] {
  return frames.filter(({ type }, at) => type !== 'response.in_progress' || at === 1)
}

/** The frames of each item, from `added` to `done`, with one index and one id on all of them. */
function splitItems(frames: readonly Frame[]): Frame[][] {
  const items: Frame[][] = []
  let open: Frame[] | null = null
  for (const frame of frames) {
    if (frame.type === 'response.output_item.added') {
      expect(open, 'an item begins after the end of the one before').toBeNull()
      open = []
      items.push(open)
    }
    const isOutside = lifecycle.has(frame.type) || frame.type === 'error'
    expect(open === null, `${frame.type} is where it belongs`).toBe(isOutside)
    open?.push(frame)
    if (frame.type === 'response.output_item.done') open = null
  }
  const ids = items.map(([added]) => object(added ?? {}, 'item')['id'])
  expect(new Set(ids).size, 'ids are unique').toBe(ids.length)
  items.forEach((item, index) => {
    for (const frame of item) {
      expect(frame['output_index'], frame.type).toBe(index)
      const id = isRecord(frame['item']) ? frame['item']['id'] : frame['item_id']
      expect(id, frame.type).toBe(ids[index])
    }
  })
  return items
}

/** Returns the item as it ended. */
function checkItem(frames: readonly Frame[]): JsonObject {
  const added = object(frames[0] ?? {}, 'item')
  const done = object(frames.at(-1) ?? {}, 'item')
  const inner = frames.slice(1, -1)
  expect(done['type']).toBe(added['type'])
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
    default:
      checkHostedTool(inner, String(done['type']))
  }
  return done
}

function checkMessage(inner: readonly Frame[], added: JsonObject, done: JsonObject): void {
  expect(added).toMatchObject({ status: 'in_progress', role: 'assistant', content: [] })
  expect(done['status']).toBeOneOf(['completed', 'incomplete'])
  expectOrder(
    inner,
    /^content_part\.added (((output_text\.delta|output_text\.annotation\.added) )*output_text\.done|(refusal\.delta )*refusal\.done) content_part\.done$/,
  )
  for (const frame of inner) expect(frame['content_index'], frame.type).toBe(0)
  const part = object(inner.at(-1) ?? {}, 'part')
  expect(done['content']).toEqual([part])
  const field = part['type'] === 'refusal' ? 'refusal' : 'text'
  const text = join(inner)
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
    const text = join(inner.slice(from, at))
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
  const text = join(inner)
  expect([inner.at(-1)?.[field], done[field]]).toEqual([text, text])
}

const stages = /^(in_progress|searching|interpreting|generating|completed|failed)$/

function checkHostedTool(inner: readonly Frame[], itemType: string): void {
  for (const { type } of inner) {
    expect(type).toStartWith(`response.${itemType}.`)
    expect(type.slice(`response.${itemType}.`.length)).toMatch(stages)
  }
}

/** A heartbeat shows the items as far as they had come. */
function checkHeartbeats(frames: readonly Frame[], output: readonly JsonObject[]): void {
  frames.forEach((frame, at) => {
    if (frame.type !== 'response.in_progress') return
    const before = frames.slice(0, at)
    const count = (end: string) =>
      before.filter(({ type }) => type === `response.output_item.${end}`).length
    const shown = list(object(frame, 'response')['output'])
    const ended = count('done')
    expect(shown.length).toBe(count('added'))
    expect(shown.slice(0, ended)).toEqual(output.slice(0, ended))
    const open = shown[ended]
    if (open === undefined) return
    expect([open['id'], open['type']]).toEqual([output[ended]?.['id'], output[ended]?.['type']])
    const said = join(before.filter((earlier) => earlier['output_index'] === ended))
    expect(textOf(open)).toBe(said)
  })
}

/** The text that the deltas of an item add up to, in whatever field it is kept. */
function textOf(item: JsonObject): string {
  const { arguments: args, input, summary, content } = item
  if (typeof args === 'string') return args
  if (typeof input === 'string') return input
  const parts = item['type'] === 'reasoning' ? list(summary) : list(content)
  return parts.map((part) => part['text'] ?? part['refusal'] ?? '').join('')
}

function expectOrder(frames: readonly Frame[], order: RegExp): void {
  expect(frames.map(({ type }) => type.replace('response.', '')).join(' ')).toMatch(order)
}

function isDelta({ type }: Frame): boolean {
  return type.endsWith('.delta')
}

function join(frames: readonly Frame[]): string {
  return frames
    .filter(isDelta)
    .map((frame) => frame['delta'])
    .join('')
}

function object(parent: JsonObject, field: string): JsonObject {
  const value = parent[field]
  if (!isRecord(value)) throw new Error(`${field} is no object in ${JSON.stringify(parent)}`)
  return value
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
