import { invalidResponse } from '#inference/decode-errors.ts'
import type { BlockEvent, GenerationEvent } from '#inference/events.ts'

/**
 * Serialises the blocks of items that may be streamed concurrently. The item that began first is
 * active, and its events are emitted at once; events of the others are buffered until it ends.
 */
export type BlockSequence = {
  /** Receives the events; set for each server-sent event. */
  sink: GenerationEvent[]
  active: Lane | null
  /** The lanes that have begun and are buffered, in order. */
  queue: Lane[]
  nextBlockNumber: number
  bufferedChars: number
  /** Nothing may follow a truncated call: a client would consider the call complete. */
  over: boolean
}

/** The path of one upstream item to the blocks that it becomes. */
export type Lane = {
  readonly kind: LaneKind
  readonly sequence: BlockSequence
  /** Emits the end of the open block, if one is open. */
  readonly close: (complete: boolean) => void
  /** The number of the open block; meaningless while the lane is queued. */
  block: number
  /** Whether it has begun a block. */
  begun: boolean
  /** `output_item.added` announced the item, so its end will be reported. */
  announced: boolean
  /** Its text is known to be complete. */
  settled: boolean
  /** How the item ended; null while it may continue. */
  outcome: Outcome | null
  /** Its events while another lane is active. */
  buffered: BlockEvent[]
}

export type LaneKind = 'message' | 'reasoning' | 'tool-call' | 'hosted-tool'
export type Outcome = 'complete' | 'incomplete'

/** The most that is buffered until another item ends, in characters. */
const bufferedCharsMax = 8_388_608
/** The assumed size of an event without its text. */
const eventOverheadChars = 64

export function createBlockSequence(): BlockSequence {
  return { sink: [], active: null, queue: [], nextBlockNumber: 0, bufferedChars: 0, over: false }
}

export function createLane(
  sequence: BlockSequence,
  kind: LaneKind,
  close: (complete: boolean) => void,
): Lane {
  return {
    kind,
    sequence,
    close,
    block: -1,
    begun: false,
    announced: false,
    settled: false,
    outcome: null,
    buffered: [],
  }
}

/** Begins a block; its number in `start` is assigned here. */
export function beginBlock(lane: Lane, start: BlockEvent): void {
  const { sequence } = lane
  if (sequence.over) return
  lane.begun = true
  sequence.active ??= lane
  if (lane === sequence.active) {
    emit(lane, start)
    return
  }
  if (!sequence.queue.includes(lane)) sequence.queue.push(lane)
  buffer(lane, start)
  advance(sequence)
}

/** Continues the block that the lane began last; `event` carries `lane.block`. */
export function appendEvent(lane: Lane, event: BlockEvent): void {
  const { sequence } = lane
  if (lane === sequence.active) sequence.sink.push(event)
  else if (!sequence.over) buffer(lane, event)
}

/** The text of the item is complete, which is enough for a queued lane to become active. */
export function settleLane(lane: Lane): void {
  lane.settled = true
  if (lane.sequence.queue.length > 0) advance(lane.sequence)
}

export function endLane(lane: Lane, outcome: Outcome): void {
  lane.outcome = outcome
  advance(lane.sequence)
}

/** All items have ended: closes the block that was kept open because it might be the last. */
export function endSequence(sequence: BlockSequence): void {
  sequence.active?.close(sequence.active.outcome !== 'incomplete')
  sequence.active = null
}

/** Closes active lanes for as long as they have ended or yield to the next one. */
function advance(sequence: BlockSequence): void {
  while (sequence.active !== null) {
    const { active } = sequence
    const next = sequence.queue[0]
    if (next === undefined ? active.outcome !== 'complete' : !yieldsTo(active, next)) return
    // Only the last block may be incomplete, so truncated text counts as complete here.
    const complete = active.outcome !== 'incomplete' || active.kind !== 'tool-call'
    active.close(complete)
    if (!complete) {
      sequence.over = true
      sequence.queue = []
    }
    activateNext(sequence)
  }
}

/**
 * Whether the active lane yields to the next one, even if the end of its item was not reported.
 * llama.cpp reports the end of every item only at the end of the stream, which would delay the
 * answer until then: text and reasoning yield to an item of another kind. If they continue
 * nevertheless, they do so in a new block.
 */
function yieldsTo(active: Lane, next: Lane): boolean {
  if (active.outcome !== null || active.settled || !active.announced) return true
  return (active.kind === 'message' || active.kind === 'reasoning') && active.kind !== next.kind
}

function activateNext(sequence: BlockSequence): void {
  const active = sequence.queue.shift() ?? null
  sequence.active = active
  if (active === null) return
  const { buffered } = active
  active.buffered = []
  for (const event of buffered) {
    sequence.bufferedChars -= sizeOf(event)
    emit(active, event)
  }
}

function emit(lane: Lane, event: BlockEvent): void {
  if (event.type.endsWith('-start')) lane.block = lane.sequence.nextBlockNumber++
  lane.sequence.sink.push({ ...event, block: lane.block })
}

function buffer(lane: Lane, event: BlockEvent): void {
  const { sequence } = lane
  lane.buffered.push(event)
  sequence.bufferedChars += sizeOf(event)
  if (sequence.bufferedChars > bufferedCharsMax) {
    throw invalidResponse('sent more concurrent output items than can be buffered')
  }
}

function sizeOf(event: BlockEvent): number {
  return eventOverheadChars + ('text' in event ? event.text.length : 0)
}
