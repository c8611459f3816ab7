import { expect } from 'bun:test'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { messageEvent } from '#surfaces/messages/schema/events.ts'
import { checkDescribed } from './described-shapes.ts'
import { checkContent, checkStreamedBlock } from './message-blocks.ts'
import { checkEnd, checkErrorBody, checkMessageHead, checkUsage, isCut } from './message-objects.ts'

/**
 * A second implementation of the frame order of /compat that the strictest clients require,
 * independent of the renderer.
 */
export type MessageFrame = JsonObject & { type: string }

export type CheckedMessage = {
  frames: MessageFrame[]
  /** The message of the frames; null if an error came before it began. */
  message: JsonObject | null
  /** The error that ended the stream, if one did. */
  error: JsonObject | null
}

/** Throws at the first frame that is out of order or inconsistent. */
export function checkMessageStream(wire: string): CheckedMessage {
  const frames = readMessageFrames(wire)
  expect(['message_stop', 'error'], 'the stream has an end').toContain(frames.at(-1)?.type ?? '')
  return checkFrames(frames)
}

/** Whether a stream needs no correction: what servers send often lacks what strict clients require. */
export function isConformingStream(wire: string): boolean {
  try {
    checkMessageStream(wire)
    return (
      !wire.includes('"signature":""') &&
      wire.includes('"stop_sequence"', wire.indexOf('"message_delta"'))
    )
  } catch {
    return false
  }
}

/** The frames of an interrupted stream, valid so far. */
export function checkMessageBeginning(wire: string): MessageFrame[] {
  const frames = wire.split('\n\n').slice(0, -1).map(readFrame)
  checkFrames(frames)
  return frames
}

/** Frames as they are sent. */
function readMessageFrames(wire: string): MessageFrame[] {
  const blocks = wire.split('\n\n')
  expect(blocks.pop(), 'the last frame is whole').toBe('')
  return blocks.map(readFrame)
}

function readFrame(block: string): MessageFrame {
  const match = /^event: (\S+)\ndata: (\{[^\n]*\})$/.exec(block)
  const parsed: unknown = JSON.parse(match?.[2] ?? `"not a frame: ${block.slice(0, 100)}"`)
  if (!isFrame(parsed)) throw new Error(String(parsed))
  expect(parsed.type, 'the name of the event is its type').toBe(match?.[1] ?? '')
  return parsed
}

function isFrame(value: unknown): value is MessageFrame {
  return isRecord(value) && typeof value['type'] === 'string'
}

type State = {
  message: JsonObject | null
  blocks: { shell: JsonObject; deltas: JsonObject[] }[]
  isOpen: boolean
  ends: { delta: JsonObject; usage: JsonObject }[]
  error: JsonObject | null
  isOver: boolean
}

function checkFrames(frames: MessageFrame[]): CheckedMessage {
  const state: State = {
    message: null,
    blocks: [],
    isOpen: false,
    ends: [],
    error: null,
    isOver: false,
  }
  for (const frame of frames) {
    checkDescribed(messageEvent, frame)
    expect(state.isOver, `${frame.type} behind the end`).toBe(false)
    take(state, frame)
  }
  return { frames, message: addUp(state), error: state.error }
}

function take(state: State, frame: MessageFrame): void {
  switch (frame.type) {
    case 'ping':
      expect(frame).toEqual({ type: 'ping' })
      return
    case 'message_start':
      expect(state.message, 'a message begins once').toBeNull()
      state.message = asRecord(frame['message'])
      state.blocks = checkMessageHead(state.message).map((shell) => ({ shell, deltas: [] }))
      return
    case 'error':
      expect(state.isOpen, 'the open block ends before an error').toBe(false)
      state.error = checkErrorBody(frame)
      state.isOver = true
      return
    default:
      expect(state.message, `${frame.type} before message_start`).not.toBeNull()
      takeInMessage(state, frame)
  }
}

function takeInMessage(state: State, frame: MessageFrame): void {
  const { type, index } = frame
  const last = state.blocks.at(-1)
  if (type === 'content_block_start') {
    expect(state.isOpen, 'a block begins after the end of the one before').toBe(false)
    expect(state.ends, 'no block comes behind the end').toEqual([])
    expect(index, 'indexes have no hole').toBe(state.blocks.length)
    state.blocks.push({ shell: asRecord(frame['content_block']), deltas: [] })
    state.isOpen = true
  } else if (type === 'content_block_delta' || type === 'content_block_stop') {
    expect(state.isOpen, `${type} in a block`).toBe(true)
    expect(index, 'it is of the open block').toBe(state.blocks.length - 1)
    if (type === 'content_block_stop') state.isOpen = false
    else last?.deltas.push(asRecord(frame['delta']))
  } else if (type === 'message_delta') {
    expect(state.isOpen, 'the end comes behind the last block').toBe(false)
    const { delta, usage, warning } = frame
    if (!isRecord(delta) || !isRecord(usage)) throw new Error('an end without usage')
    state.ends.push({ delta: warning === undefined ? delta : { ...delta, warning }, usage })
  } else {
    expect(type, 'clients fail at an event that they do not know').toBe('message_stop')
    const { reason } = endOf(state)
    expect(reason, 'the stop reason is set').not.toBeNull()
    state.isOver = true
  }
}

/** The message of a client at the end, or so far. */
function addUp(state: State): JsonObject | null {
  if (state.message === null) return null
  const { end, reason } = endOf(state)
  const mayBeCut = reason === null || isCut(reason)
  const content = state.blocks.map((block, at) =>
    checkStreamedBlock(block, { mayBeCut: mayBeCut && at === state.blocks.length - 1 }),
  )
  checkContent(content)
  if (reason !== null) checkEnd(end, content)
  return { ...end, content, usage: addUsage(state) }
}

/** A complete message at the start of the stream contains it as well. */
function endOf({ message, ends }: State): { end: JsonObject; reason: unknown } {
  const end: JsonObject = Object.assign({}, message, ...ends.map(({ delta }) => delta))
  return { end, reason: end['stop_reason'] ?? null }
}

/** Counts are cumulative: they never decrease, and null keeps the previous value. */
function addUsage({ message, ends }: State): JsonObject {
  const usage = { ...asRecord(message?.['usage']) }
  for (const { usage: counted } of ends) {
    checkUsage(counted, { isWhole: false })
    expect(Number(counted['output_tokens']), 'output only grows').toBeGreaterThanOrEqual(
      Number(usage['output_tokens']),
    )
    for (const [name, count] of Object.entries(counted)) if (count !== null) usage[name] = count
  }
  return usage
}
