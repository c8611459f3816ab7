import type { Engine, EngineError, EngineEvent } from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import { EngineFeed, type FeedSettings } from './engine-feed.ts'
import type { EngineRun, RunFailure } from './engine-run.ts'
import type { Supply } from './engine-supply.ts'
import type { EngineLineHooks, RolloverReason } from './rollover.ts'
import { createSuccession, type Succession } from './succession.ts'

export type EngineLineSettings = FeedSettings & {
  readonly supply: Omit<Supply, 'signal' | 'waiting'>
  readonly stallMs: number
  readonly rolloversMax: number
  readonly log: Log
}

/** An engine may keep so much until more comes. */
const restMsMax = 500
/** Before the limit of an engine's session, a pause is looked for in this share of it. */
const limitMarginShare = 1 / 8
const limitMarginMsMax = 30_000
/**
 * The next engine begins so much earlier, unless finals reach further: in a pause because speech is
 * noticed late, amid speech because the last word is cut.
 */
const quietOverlapMs = 200
const speechOverlapMs = 1_500
const rolloversWithinMs = 600_000

/**
 * One line of audio through as many engine sessions as it takes. It keeps the newest audio; when an
 * engine fails, a fresh one takes over where finals end. Before an engine's own limit it is changed
 * in a pause: the old one gives its last finals while the new one is being opened, and then the new
 * one goes on where the old one stopped.
 */
export class EngineLine {
  readonly #settings: EngineLineSettings
  readonly #hooks: EngineLineHooks
  readonly #feed: EngineFeed
  readonly #succession: Succession
  #run: EngineRun | null = null
  /** The engine was told that it gets no more. */
  #isRunEnding = false
  /** Where the next engine begins if this one ends in good order; null: where finals end. */
  #seam: number | null = null
  #engine: Engine
  #sessions = 0
  #reason: RolloverReason = 'failed'
  #failedAt: number[] = []
  #isOver = false
  #wasFull = false

  constructor(first: EngineRun, settings: EngineLineSettings, hooks: EngineLineHooks) {
    this.#settings = settings
    this.#hooks = hooks
    this.#engine = first.engine
    this.#feed = new EngineFeed(settings, (run) => this.#leaveNearLimit(run))
    this.#succession = createSuccession(settings.supply, {
      found: () => this.#goOn(),
      waiting: () => {
        if (this.#run === null) hooks.waiting()
      },
      gaveUp: (error) => this.#giveUp(error),
    })
    this.#begin(first, 0)
  }

  engine(): Engine {
    return this.#engine
  }

  sessions(): number {
    return this.#sessions
  }

  /** What the engine in charge has taken in; null while there is none. */
  processedMs(): number | null {
    return this.#run?.processedMs() ?? null
  }

  /** What the engine in charge was given. */
  writtenMs(): number {
    return this.#settings.timescale.toMs(this.#feed.cursor())
  }

  /** For whom the engine is giving finals just now. */
  askedId(): string | null {
    return this.#feed.askedId()
  }

  roomMs(): number {
    const roomMs = this.#feed.roomMs()
    this.#wasFull ||= roomMs === 0
    return roomMs
  }

  write(samples: Int16Array): void {
    this.#feed.append(samples)
    this.#goOnFeeding()
  }

  finalize(id: string): void {
    this.#feed.requestFinals(id)
    this.#goOnFeeding()
  }

  end(): void {
    this.#feed.setEnd()
    this.#goOnFeeding()
  }

  /** What is before this time will not be needed again, once the engine has it. */
  forgetBefore(atMs: number): void {
    this.#feed.forgetBefore(this.#settings.timescale.toSamples(atMs))
  }

  /** Whether one more engine may be tried. */
  mayReplace(): boolean {
    const since = performance.now() - rolloversWithinMs
    this.#failedAt = this.#failedAt.filter((at) => at > since)
    return this.#failedAt.length < this.#settings.rolloversMax
  }

  /** The engine is given up, and what it left without a final goes to a fresh one. */
  replace(reason: RolloverReason): void {
    this.#run?.abort()
    this.#lose(reason)
  }

  close(): void {
    this.#isOver = true
    this.#succession.stop()
    this.#run?.abort()
    this.#release()
  }

  #begin(run: EngineRun, position: number): void {
    const { timescale, stallMs, inFlightMsMax } = this.#settings
    this.#run = run
    this.#engine = run.engine
    this.#sessions += 1
    this.#feed.begin(run, position)
    run.begin({
      position,
      timescale,
      stallMs,
      restMs: Math.min(restMsMax, inFlightMsMax / 2),
      listener: {
        heard: (event) => this.#hear(event),
        ended: () => this.#onEnded(),
        failed: (how, error) => this.#onFailed(how, error),
      },
    })
  }

  /** The engine is gone. */
  #release(): void {
    this.#run = null
    this.#isRunEnding = false
    this.#feed.stop()
  }

  #goOnFeeding(): void {
    if (!this.#isRunEnding && this.#feed.feed() && !this.#isRunEnding) this.#endRun()
    if (!this.#wasFull || this.#feed.roomMs() === 0) return
    this.#wasFull = false
    this.#hooks.room()
  }

  #endRun(): void {
    this.#isRunEnding = true
    this.#run?.end()
  }

  #leaveNearLimit(run: EngineRun): boolean {
    if (this.#isRunEnding) return true
    const limitMs = run.engine.limits.sessionMsMax
    const restMs = limitMs - run.writtenMs()
    if (restMs > Math.min(limitMarginMsMax, limitMs * limitMarginShare)) return false
    const isQuiet = this.#hooks.isQuietAt(this.writtenMs())
    if (!isQuiet && restMs > 0) return false
    this.#reason = 'limit'
    const overlapMs = Math.min(isQuiet ? quietOverlapMs : speechOverlapMs, limitMs / 4)
    this.#seam = this.#feed.cursor() - this.#settings.timescale.toSamples(overlapMs)
    // Amid speech the whole utterance goes to the next engine, so that no word is cut; unless that
    // is so long a way back that little would be won.
    if (isQuiet || this.writtenMs() - this.#hooks.uncoveredFromMs() > limitMs / 2) this.#endRun()
    else {
      this.#seam = null
      run.abort()
      this.#release()
    }
    this.#succession.seek(null)
    return true
  }

  #hear(event: EngineEvent): void {
    if (event.type === 'finalized') {
      const position = this.#feed.takeAnswer()
      this.#hooks.drained(this.#settings.timescale.toMs(position))
      this.#tellFinalized(position)
    } else this.#hooks.heard(event)
    this.#goOnFeeding()
  }

  #onEnded(): void {
    if (!this.#isRunEnding) {
      this.#lose('failed')
      return
    }
    this.#hooks.drained(this.writtenMs())
    this.#tellFinalized(this.#feed.cursor())
    this.#release()
    if (this.#feed.isAllGiven()) this.#finish()
    else this.#goOn()
  }

  #onFailed(how: RunFailure, error: EngineError): void {
    const { log } = this.#settings
    log.warn('a speech engine broke off a session', { engine: this.#engine.name, how, error })
    this.#lose(error.kind === 'limit' ? 'limit' : how)
  }

  /** The engine is gone without having answered all that it was given. */
  #lose(reason: RolloverReason): void {
    if (this.#isOver) return
    const wasAllGiven = this.#feed.isAllGiven()
    this.#release()
    this.#seam = null
    this.#reason = reason
    if (wasAllGiven && this.#uncoveredFrom() >= this.#feed.end()) this.#finish()
    else if (this.mayReplace()) {
      this.#failedAt.push(performance.now())
      this.#succession.seek(this.#engine.name)
      this.#goOn()
    } else this.#hooks.failed(reason)
  }

  #uncoveredFrom(): number {
    return this.#settings.timescale.toSamples(this.#hooks.uncoveredFromMs())
  }

  /** The next engine takes over, if there is one and the last has ended. */
  #goOn(): void {
    if (this.#run !== null || this.#isOver) return
    const run = this.#succession.take()
    if (run === null) return
    if (run.isOver()) {
      this.#engine = run.engine
      this.#lose('failed')
    } else this.#takeOver(run)
  }

  #takeOver(run: EngineRun): void {
    const { timescale } = this.#settings
    const from = this.#engine.name
    const wanted = Math.max(this.#seam ?? 0, this.#uncoveredFrom())
    const position = Math.max(wanted, this.#feed.start())
    const atMs = timescale.toMs(position)
    const replayedMs = timescale.toMs(this.#feed.end() - position)
    this.#seam = null
    this.#begin(run, position)
    if (position > wanted) this.#hooks.lost(atMs)
    this.#hooks.rolledOver({ reason: this.#reason, from, to: run.engine.name, atMs, replayedMs })
    this.#tellFinalized(position)
    this.#goOnFeeding()
  }

  #giveUp(error: EngineError): void {
    this.#settings.log.error('no speech engine can be had', { error })
    // While the last one still gives its finals there is time for another search.
    if (this.#run === null) this.#hooks.failed(this.#reason)
    else this.#succession.seek(null)
  }

  #finish(): void {
    this.#succession.stop()
    this.#tellFinalized(this.#feed.end())
    this.#hooks.ended()
  }

  #tellFinalized(position: number): void {
    const { timescale } = this.#settings
    const requests = this.#feed.takeRequestsUpTo(position)
    if (requests.length === 0) return
    this.#hooks.finalized(
      requests.map(({ id, position: at }) => ({ id, audioMs: timescale.toMs(at) })),
    )
  }
}
