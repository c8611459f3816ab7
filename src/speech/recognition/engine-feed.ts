import { assert } from '#lib/assert.ts'
import type { EngineRun } from './engine-run.ts'
import { createFinalizeQueue, type FinalizeRequest } from './finalize-queue.ts'
import { createReplayTail, type ReplayTail } from './replay-tail.ts'
import type { Timescale } from './timescale.ts'

export type FeedSettings = {
  readonly timescale: Timescale
  /** What an engine may have been given and not have taken in. */
  readonly inFlightMsMax: number
  /** What is kept of the audio that the engine in charge was given. */
  readonly replayMsMax: number
}

/** As much as an engine is given at once, and as it is worth the while to give. */
const pieceMsMax = 200
const pieceMsMin = 100

/**
 * The newest audio of a session, and how far the engine in charge was given it: never more than it
 * can take in soon, and never past a place where finals are asked for.
 */
export class EngineFeed {
  readonly #settings: FeedSettings
  readonly #samplesMax: number
  readonly #tail: ReplayTail
  readonly #finalizes = createFinalizeQueue()
  /** Whether the engine is to be left here; then it gets no more. */
  readonly #isToLeave: (run: EngineRun) => boolean
  #run: EngineRun | null = null
  /** What the engine was given ends here. */
  #cursor = 0
  #hasEnd = false
  #isFeeding = false
  #isFeedWanted = false

  constructor(settings: FeedSettings, isToLeave: (run: EngineRun) => boolean) {
    const { timescale, inFlightMsMax, replayMsMax } = settings
    this.#settings = settings
    this.#isToLeave = isToLeave
    // What waits for the engine comes on top of what is kept for the next.
    this.#samplesMax = timescale.toSamples(replayMsMax + inFlightMsMax + pieceMsMax)
    this.#tail = createReplayTail(this.#samplesMax)
  }

  /** From here on this engine is fed, with what is at this position first. */
  begin(run: EngineRun, position: number): void {
    this.#run = run
    this.#cursor = position
  }

  /** The engine is fed no more; whoever waits for its finals waits for those of the next. */
  stop(): void {
    this.#run = null
    this.#finalizes.settle()
  }

  start(): number {
    return this.#tail.start()
  }

  end(): number {
    return this.#tail.end()
  }

  cursor(): number {
    return this.#cursor
  }

  /** Whether no audio is to come, and the engine was given all. */
  isAllGiven(): boolean {
    return this.#hasEnd && this.#cursor === this.#tail.end()
  }

  roomMs(): number {
    if (this.#run === null || this.#hasEnd) return 0
    const { inFlightMsMax, timescale } = this.#settings
    const outstandingMs = timescale.toMs(this.#tail.end()) - this.#run.processedMs()
    return Math.max(0, inFlightMsMax - outstandingMs)
  }

  append(samples: Int16Array): void {
    const waiting = this.#tail.end() - this.#cursor + samples.length
    assert(waiting <= this.#samplesMax, 'no more is written than there is room for')
    this.#tail.append(samples)
  }

  setEnd(): void {
    this.#hasEnd = true
  }

  /** What is before this position will not be needed again, once the engine has it. */
  forgetBefore(position: number): void {
    this.#tail.dropBefore(Math.min(this.#cursor, position))
  }

  requestFinals(id: string): void {
    this.#finalizes.add(id, this.#tail.end())
  }

  askedId(): string | null {
    return this.#finalizes.askedId()
  }

  /** The engine has given the finals that it was asked for: of all before this position. */
  takeAnswer(): number {
    return this.#finalizes.settle()
  }

  takeRequestsUpTo(position: number): readonly FinalizeRequest[] {
    return this.#finalizes.takeUpTo(position)
  }

  /** Gives the engine what it may be given; returns whether all was given and no more will come. */
  feed(): boolean {
    // Engines may answer within the call that gives them audio.
    this.#isFeedWanted = true
    if (this.#isFeeding) return false
    this.#isFeeding = true
    try {
      while (this.#isFeedWanted) this.#feedWhileRoom()
    } finally {
      this.#isFeeding = false
    }
    return this.#run !== null && this.isAllGiven()
  }

  #feedWhileRoom(): void {
    this.#isFeedWanted = false
    while (this.#run !== null && this.#feedOnce(this.#run));
  }

  /** Returns whether there may be more to do. */
  #feedOnce(run: EngineRun): boolean {
    const asked = this.#finalizes.nextPosition()
    if (asked !== null && asked <= this.#cursor) {
      this.#finalizes.ask(this.#cursor)
      run.finalize()
      return true
    }
    const waiting = this.#tail.end() - this.#cursor
    if (waiting === 0 || this.#isToLeave(run)) return false
    const upTo = (asked ?? this.#tail.end()) - this.#cursor
    const count = Math.min(this.#roomInRun(run, waiting), upTo)
    if (count === 0) return false
    const samples = this.#tail.read(this.#cursor, count)
    this.#cursor += count
    run.write(samples)
    return true
  }

  /** How many samples of those that wait the engine may be given now. */
  #roomInRun(run: EngineRun, waiting: number): number {
    const { timescale, inFlightMsMax } = this.#settings
    const limitMs = run.engine.limits.sessionMsMax - run.writtenMs()
    const roomMs = Math.min(inFlightMsMax - run.inFlightMs(), limitMs)
    const worthMs = Math.min(pieceMsMin, inFlightMsMax / 2, limitMs, timescale.toMs(waiting))
    if (roomMs <= 0 || roomMs < worthMs) return 0
    return Math.min(waiting, timescale.toSamples(Math.min(roomMs, pieceMsMax)))
  }
}
