import { expect } from 'bun:test'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { checkItem, joinDeltas, textOfItem } from './response-items.ts'
import { checkLifecycle, isOfLifecycle } from './response-lifecycle.ts'

/**
 * A second implementation of the frame order of responses, by the published format and the
 * strictest clients, independent of the renderer.
 */
export type Frame = JsonObject & { type: string }

export type CheckedStream = {
  frames: Frame[]
  /** The response of the terminal frame. */
  response: JsonObject
}

/** Frames on the wire. Throws on anything that is neither a frame nor the end. */
export function readFrames(wire: string): Frame[] {
  const blocks = wire.split('\n\n')
  expect(blocks.splice(-2), 'the stream ends with [DONE] and nothing after it').toEqual([
    'data: [DONE]',
    '',
  ])
  return blocks.map(readFrame)
}

/** The complete frames of an open stream so far. */
export function readOpenFrames(wire: string): Frame[] {
  return wire
    .split('\n\n')
    .slice(0, -1)
    .filter((block) => block !== 'data: [DONE]')
    .map(readFrame)
}

/** Throws at the first frame that is out of order or inconsistent. */
export function checkStream(wire: string): CheckedStream {
  return checkWhole(readFrames(wire))
}

/** The messages of one response over a WebSocket, from `response.created` to its end. */
export function checkTurn(messages: readonly unknown[]): CheckedStream {
  return checkWhole(
    messages.map((message) => {
      if (!isFrame(message)) throw new Error(`not a frame: ${JSON.stringify(message)}`)
      return message
    }),
  )
}

/** The error frame of a refused request over a WebSocket; returns its `error`. */
export function checkErrorMessage(message: unknown): JsonObject {
  expect(message).toMatchObject({ type: 'error', status: expect.any(Number) })
  const error = object(isRecord(message) ? message : {}, 'error')
  expect(Object.keys(error)).toEqual(expect.arrayContaining(['message', 'type', 'param', 'code']))
  return error
}

/** The frames after an already received one; the response is null if there are none. */
export function checkTail(
  wire: string,
  startingAfter: number,
): { frames: Frame[]; response: JsonObject | null } {
  const frames = readFrames(wire)
  checkNumbers(frames, startingAfter + 1)
  if (frames.length === 0) return { frames, response: null }
  const states = checkLifecycle(frames, { from: 'anywhere', isOver: true })
  const response = last(states)
  const begin = frames.findIndex(({ type }) => type === added)
  const known = frames.slice(0, begin === -1 ? frames.length : begin)
  const output = list(response['output'])
  const seen = checkRest(known, output)
  const firstIndex = begin === -1 ? output.length : Number(frames[begin]?.['output_index'])
  if (seen !== null) expect(firstIndex, 'one item follows the other').toBe(seen + 1)
  const items = begin === -1 ? [] : splitItems(frames.slice(begin), firstIndex)
  const ended = items.map(checkItem)
  expect(output.slice(firstIndex), 'the closing frame repeats the items').toEqual(ended)
  checkOutput(response)
  return { frames, response }
}

/** The frames of an interrupted stream, valid so far. */
export function checkBeginning(wire: string): Frame[] {
  const frames = readOpenFrames(wire)
  checkNumbers(frames, 0)
  checkLifecycle(frames, { from: 'start', isOver: false })
  const items = splitItems(frames, 0)
  const isOpen = items.at(-1)?.at(-1)?.type !== done
  const output = (isOpen ? items.slice(0, -1) : items).map(checkItem)
  checkHeartbeats(frames, output)
  return frames
}

function checkWhole(frames: Frame[]): CheckedStream {
  checkNumbers(frames, 0)
  const response = last(checkLifecycle(frames, { from: 'start', isOver: true }))
  const items = splitItems(frames, 0)
  const output = items.map(checkItem)
  expect(response['output'], 'the closing frame repeats what the items said').toEqual(output)
  checkOutput(response)
  checkHeartbeats(frames, output)
  return { frames, response }
}

function checkNumbers(frames: readonly Frame[], first: number): void {
  expect(
    frames.map((frame) => frame['sequence_number']),
    `one counter from ${first}`,
  ).toEqual(frames.map((_, at) => first + at))
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

const added = 'response.output_item.added'
const done = 'response.output_item.done'

/** Only the last item may be incomplete, and none in a completed response. */
function checkOutput(response: JsonObject): void {
  const output = list(response['output'])
  const statuses = output.map(({ status }) => status)
  expect(statuses, 'no item is left open').not.toContain('in_progress')
  const whole = response['status'] === 'completed' ? statuses : statuses.slice(0, -1)
  expect(whole, 'what is incomplete is the end').not.toContain('incomplete')
  const ids = output.map(({ id }) => id)
  expect(new Set(ids).size, 'every id is unique').toBe(ids.length)
  const calls = output.filter((item) => 'call_id' in item)
  const names = new Set(calls.map((item) => `${item['type']} ${item['call_id']}`))
  expect(names.size, 'every call_id is unique').toBe(calls.length)
}

/** The frames of each item, from `added` to `done`, with the same index and id. */
function splitItems(frames: readonly Frame[], firstIndex: number): Frame[][] {
  const items: Frame[][] = []
  let open: Frame[] | null = null
  for (const frame of frames) {
    if (frame.type === 'response.in_progress') continue
    if (frame.type === added) {
      expect(open, 'an item begins after the end of the one before').toBeNull()
      open = []
      items.push(open)
    }
    if (open !== null && isBreakingOff(frame)) {
      // The item was never ended, so it is not part of the output.
      items.pop()
      open = null
    }
    const isOutside = isOfLifecycle(frame.type)
    expect(open === null, `${frame.type} is where it belongs`).toBe(isOutside)
    open?.push(frame)
    if (frame.type === done) open = null
  }
  for (const [index, item] of items.entries()) {
    for (const frame of item) {
      // The format has no item id in these events.
      const isNameless = frame.type.startsWith('response.shell_call_command.')
      const id = isNameless ? undefined : idOf(item[0])
      expect(placeOf(frame), frame.type).toEqual([firstIndex + index, id])
    }
  }
  return items
}

/** If the process of a response died, or the response was deleted while it ran. */
function isBreakingOff({ type, code }: Frame): boolean {
  return type === 'error' && (code === 'worker_lost' || code === 'not_found')
}

/** The rest of an item whose start was received before; returns its index, or null without any. */
function checkRest(frames: readonly Frame[], output: readonly JsonObject[]): number | null {
  const rest = frames.filter(({ type }) => !isOfLifecycle(type))
  const end = rest.at(-1)
  if (end === undefined) return null
  if (end.type !== done && frames.some(isBreakingOff)) return null
  expect(end.type, 'the item that is open comes to its end').toBe(done)
  expect(rest.filter(({ type }) => type === done)).toHaveLength(1)
  const index = Number(end['output_index'])
  for (const frame of rest) expect(placeOf(frame), frame.type).toEqual([index, idOf(end)])
  expect(output[index], 'the closing frame repeats the item').toEqual(object(end, 'item'))
  return index
}

function placeOf(frame: Frame): unknown[] {
  return [frame['output_index'], idOf(frame)]
}

function idOf(frame: Frame | undefined): unknown {
  return isRecord(frame?.['item']) ? frame['item']['id'] : frame?.['item_id']
}

/** A heartbeat contains the items so far. */
function checkHeartbeats(frames: readonly Frame[], output: readonly JsonObject[]): void {
  frames.forEach((frame, at) => {
    if (frame.type !== 'response.in_progress') return
    const before = frames.slice(0, at)
    const count = (type: string) => before.filter((earlier) => earlier.type === type).length
    const shown = list(object(frame, 'response')['output'])
    const ended = count(done)
    expect(shown.length).toBe(count(added))
    expect(shown.slice(0, ended)).toEqual(output.slice(0, ended))
    const open = shown[ended]
    if (open === undefined) return
    const ofIt = before.filter((earlier) => earlier['output_index'] === ended)
    const begun = object(ofIt[0] ?? {}, 'item')
    expect([open['id'], open['type']]).toEqual([begun['id'], begun['type']])
    expect(textOfItem(open)).toBe(textOfItem(begun) + joinDeltas(ofIt))
  })
}

function last(states: readonly JsonObject[]): JsonObject {
  const state = states.at(-1)
  if (state === undefined) throw new Error('no response')
  return state
}

function object(parent: JsonObject, field: string): JsonObject {
  const value = parent[field]
  if (!isRecord(value)) throw new Error(`${field} is no object in ${JSON.stringify(parent)}`)
  return value
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
