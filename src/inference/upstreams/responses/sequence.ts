import type { GenerationEvent } from '#inference/events.ts'
import { AppError } from '#lib/errors.ts'

/**
 * Makes one line of blocks out of items that may run side by side. The item that began first has
 * the floor and is passed on at once; what others give meanwhile is held back until it ends.
 */
export type Sequence = {
  /** Where events go; set for each message. */
  sink: GenerationEvent[]
  floor: Lane | null
  /** Who begins next, in order. */
  waiting: Lane[]
  nextBlock: number
  heldChars: number
  /** After a call that was cut short nothing may follow: a caller would take it for whole. */
  over: boolean
}

/** The way of one upstream item to the blocks that it becomes. */
export type Lane = {
  readonly kind: LaneKind
  readonly sequence: Sequence
  /** Puts the end of the open block, if one is open. */
  readonly close: (complete: boolean) => void
  /** The number of the open block; meaningless while the lane waits. */
  block: number
  /** Whether it ever began a block. */
  begun: boolean
  /** It was announced, so its end will be reported. */
  announced: boolean
  /** Its text is known to be complete. */
  settled: boolean
  /** Nothing more comes; null while something may. */
  outcome: Outcome | null
  /** What it gave while another item had the floor. */
  held: BlockEvent[]
}

export type LaneKind = 'message' | 'reasoning' | 'tool-call' | 'hosted-tool'
export type Outcome = 'complete' | 'incomplete'
export type BlockEvent = Extract<GenerationEvent, { block: number }>

/** The most that may wait for another item to end, in characters. */
const heldCharsMax = 8_388_608
/** What an event weighs beside its text. */
const eventChars = 64

export function createSequence(): Sequence {
  return { sink: [], floor: null, waiting: [], nextBlock: 0, heldChars: 0, over: false }
}

export function createLane(
  sequence: Sequence,
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
    held: [],
  }
}

/** Begins a block; the number in `start` is set here. */
export function begin(lane: Lane, start: BlockEvent): void {
  const { sequence } = lane
  if (sequence.over) return
  lane.begun = true
  sequence.floor ??= lane
  if (lane === sequence.floor) {
    emit(lane, start)
    return
  }
  if (!sequence.waiting.includes(lane)) sequence.waiting.push(lane)
  hold(lane, start)
  advance(sequence)
}

/** Goes on with the block that the lane began last; `event` carries `lane.block`. */
export function put(lane: Lane, event: BlockEvent): void {
  const { sequence } = lane
  if (lane === sequence.floor) sequence.sink.push(event)
  else if (!sequence.over) hold(lane, event)
}

/** The text of the item is complete; if somebody waits, nothing else of it is waited for. */
export function settle(lane: Lane): void {
  lane.settled = true
  if (lane.sequence.waiting.length > 0) advance(lane.sequence)
}

export function end(lane: Lane, outcome: Outcome): void {
  lane.outcome = outcome
  advance(lane.sequence)
}

/** All items have ended: closes the block that was kept open because it might be the last. */
export function finish(sequence: Sequence): void {
  sequence.floor?.close(sequence.floor.outcome !== 'incomplete')
  sequence.floor = null
}

/** Closes whoever has the floor, as long as there is a reason to. */
function advance(sequence: Sequence): void {
  while (sequence.floor !== null) {
    const { floor } = sequence
    const next = sequence.waiting[0]
    if (next === undefined ? floor.outcome !== 'complete' : !mustYield(floor, next)) return
    // Only the last block may be incomplete, so text that was cut short counts as whole here.
    const complete = floor.outcome !== 'incomplete' || floor.kind !== 'tool-call'
    floor.close(complete)
    if (!complete) {
      sequence.over = true
      sequence.waiting = []
    }
    passFloor(sequence)
  }
}

/**
 * Whether the floor passes on to who waits, also where nothing said that its item has ended.
 * llama.cpp reports the end of each item only at the end of all, so that an answer would wait
 * behind the whole stream: text and reasoning give way to an item of another kind. If they go on
 * after all, they do so in a block of their own.
 */
function mustYield(floor: Lane, next: Lane): boolean {
  if (floor.outcome !== null || floor.settled || !floor.announced) return true
  return (floor.kind === 'message' || floor.kind === 'reasoning') && floor.kind !== next.kind
}

function passFloor(sequence: Sequence): void {
  const floor = sequence.waiting.shift() ?? null
  sequence.floor = floor
  if (floor === null) return
  const { held } = floor
  floor.held = []
  for (const event of held) {
    sequence.heldChars -= weight(event)
    emit(floor, event)
  }
}

function emit(lane: Lane, event: BlockEvent): void {
  if (event.type.endsWith('-start')) lane.block = lane.sequence.nextBlock++
  lane.sequence.sink.push({ ...event, block: lane.block })
}

function hold(lane: Lane, event: BlockEvent): void {
  const { sequence } = lane
  lane.held.push(event)
  sequence.heldChars += weight(event)
  if (sequence.heldChars > heldCharsMax) {
    throw new AppError(
      'upstream_invalid_answer',
      'The upstream sent more items at once than can be put in order.',
    )
  }
}

function weight(event: BlockEvent): number {
  return eventChars + ('text' in event ? event.text.length : 0)
}
