import { invalidResponse } from '#inference/decode-errors.ts'
import type { BlockEvent, GenerationEvent } from '#inference/events.ts'
import type { ToolName } from '#inference/request.ts'
import type { JsonObject } from '#lib/json.ts'

export type DecoderOptions = {
  /** Whether log probabilities were requested; LM Studio sends them in any case. */
  logprobs: boolean
  /** The most argument text of all tool calls together, in characters. */
  toolArgumentCharsMax: number
  /** `sealedBy` of the reasoning in this response. */
  sealedBy: string
  /** Whether the request allows a call of this tool; a call that it does not allow is a failure. */
  mayCall: (tool: ToolName) => boolean
  /** Returns a call id for a call whose id is missing or already used. */
  mintCallId: () => string
}

/**
 * The output of one generation. It serialises the blocks of items that may be streamed concurrently:
 * the item that began first is active, and its events are emitted at once; events of the others are
 * buffered until it ends.
 */
export class Output {
  readonly options: DecoderOptions
  /** In the order in which they were first seen. */
  readonly items: OutputItem[] = []
  readonly byId = new Map<string, OutputItem>()
  readonly takenCallIds = new Set<string>()
  /** The argument text of all tool calls so far. */
  argumentChars = 0
  /** Receives the events; set for each server-sent event. */
  sink: GenerationEvent[] = []
  active: OutputItem | null = null
  /** The items that have begun a block and are buffered, in order. */
  queue: OutputItem[] = []
  nextBlock = 0
  bufferedChars = 0
  /** Nothing may follow a truncated call: a client would consider the call complete. */
  isOver = false

  constructor(options: DecoderOptions) {
    this.options = options
  }
}

export type ItemKind = 'message' | 'reasoning' | 'tool-call' | 'hosted-tool'
export type Outcome = 'complete' | 'incomplete'

/** One output item: its identifiers at the upstream, and the blocks that it becomes. */
export abstract class OutputItem {
  readonly type: string
  readonly kind: ItemKind
  readonly output: Output
  id: string | null = null
  callId: string | null = null
  index: number | null = null
  /** The item in `output_item.added`; empty before that event and after the end. */
  announced: JsonObject = {}
  /** `output_item.added` announced the item, so its end will be reported. */
  isAnnounced = false
  /** Its end was reported; later events about it are repetitions. */
  done = false
  /** Whether it has begun a block. */
  begun = false
  /** Its text is known to be complete. */
  settled = false
  /** How the item ended; null while it may continue. */
  outcome: Outcome | null = null
  /** Its events while another item is active. */
  buffered: BlockEvent[] = []
  /** The number of the latest block; meaningless while the item is queued. */
  block = -1
  protected isOpen = false

  constructor(output: Output, type: string, kind: ItemKind) {
    this.output = output
    this.type = type
    this.kind = kind
  }

  /** Reads the item of `output_item.added`. */
  abstract announce(source: JsonObject): void
  /** Emits what was not streamed of the finished item. */
  abstract finish(final: JsonObject): void
  /** Emits the end of the open block, if one is open. */
  abstract close(complete: boolean): void
  /** Whether an item without an id, at the index of this one, which has ended, repeats it. */
  abstract isRepeatedBy(source: JsonObject): boolean

  /** The text of the item is complete, which is enough for a queued item to become active. */
  settle() {
    this.settled = true
    if (this.output.queue.length > 0) advance(this.output)
  }

  end(outcome: Outcome) {
    this.outcome = outcome
    advance(this.output)
  }

  /** Throws when all calls together exceed the limit. */
  protected countArguments(text: string) {
    const { output } = this
    output.argumentChars += text.length
    if (output.argumentChars > output.options.toolArgumentCharsMax) {
      throw invalidResponse('sent more tool-call arguments than the limit allows')
    }
  }

  /** Begins a block; its number in `start` is assigned here. */
  protected beginBlock(start: BlockEvent) {
    const { output } = this
    this.isOpen = true
    if (output.isOver) return
    this.begun = true
    output.active ??= this
    if (this === output.active) {
      emit(this, start)
      return
    }
    if (!output.queue.includes(this)) output.queue.push(this)
    buffer(this, start)
    advance(output)
  }

  /** Continues the block that the item began last; `event` carries its number. */
  protected append(event: BlockEvent) {
    if (this === this.output.active) this.output.sink.push(event)
    else if (!this.output.isOver) buffer(this, event)
  }
}

/** A text that was emitted in pieces. It is not kept: its length and its last piece are compared. */
export class SentText {
  chars = 0
  #lastPiece = ''

  record(piece: string) {
    this.chars += piece.length
    this.#lastPiece = piece
  }

  /** Whether `whole` begins with the emitted text. */
  isPrefixOf(whole: string): boolean {
    const start = this.chars - this.#lastPiece.length
    return whole.length >= this.chars && whole.startsWith(this.#lastPiece, start)
  }

  /**
   * The end of `whole` that was not emitted; '' when nothing is missing, or when the two contradict
   * each other, since emitted text cannot be retracted.
   */
  missingIn(whole: string): string {
    return this.isPrefixOf(whole) ? whole.slice(this.chars) : ''
  }
}

/** The most that is buffered until another item ends, in characters. */
const bufferedCharsMax = 8_388_608
/** The assumed size of an event without its text. */
const eventOverheadChars = 64

/** Closes active items for as long as they have ended or yield to the next one. */
function advance(output: Output): void {
  while (output.active !== null) {
    const { active } = output
    const next = output.queue[0]
    if (next === undefined ? active.outcome !== 'complete' : !yieldsTo(active, next)) return
    // Only the last block may be incomplete, so truncated text counts as complete here.
    const complete = active.outcome !== 'incomplete' || active.kind !== 'tool-call'
    active.close(complete)
    if (!complete) {
      output.isOver = true
      output.queue = []
    }
    activateNext(output)
  }
}

/**
 * Whether the active item yields to the next one, even if its end was not reported. llama.cpp reports
 * the end of every item only at the end of the stream, which would delay the answer until then: text
 * and reasoning yield to an item of another kind. If they continue nevertheless, they do so in a new
 * block.
 */
function yieldsTo(active: OutputItem, next: OutputItem): boolean {
  if (active.outcome !== null || active.settled || !active.isAnnounced) return true
  return (active.kind === 'message' || active.kind === 'reasoning') && active.kind !== next.kind
}

function activateNext(output: Output): void {
  const active = output.queue.shift() ?? null
  output.active = active
  if (active === null) return
  const { buffered } = active
  active.buffered = []
  for (const event of buffered) {
    output.bufferedChars -= sizeOf(event)
    emit(active, event)
  }
}

function emit(item: OutputItem, event: BlockEvent): void {
  if (event.type.endsWith('-start')) item.block = item.output.nextBlock++
  item.output.sink.push({ ...event, block: item.block })
}

function buffer(item: OutputItem, event: BlockEvent): void {
  const { output } = item
  item.buffered.push(event)
  output.bufferedChars += sizeOf(event)
  if (output.bufferedChars > bufferedCharsMax) {
    throw invalidResponse('sent more concurrent output items than can be buffered')
  }
}

function sizeOf(event: BlockEvent): number {
  if (event.type === 'hosted-tool-event') {
    return eventOverheadChars + JSON.stringify(event.fields).length
  }
  return eventOverheadChars + ('text' in event ? event.text.length : 0)
}
