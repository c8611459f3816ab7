import { Watchdog } from '#lib/deadline.ts'
import {
  type Engine,
  EngineError,
  type EngineEvent,
  type EngineOpenOptions,
} from '#speech/engine.ts'
import type { EngineChoice, EnginePool, OpenedSession } from '#speech/engines/pool.ts'
import { createRateBridge, type RateBridge } from './rate-bridge.ts'
import { shiftEvent } from './shift-event.ts'
import type { Timescale } from './timescale.ts'

export type RunRequest = {
  readonly pool: EnginePool
  readonly choice: EngineChoice
  readonly options: Omit<EngineOpenOptions, 'signal' | 'listener'>
  readonly signal: AbortSignal
}

export type RunStart = {
  /** The sample of the session that it takes first. */
  readonly position: number
  readonly timescale: Timescale
  /** How long it may have work and make no progress. */
  readonly stallMs: number
  /** So much an engine may leave until more comes: it is no work. */
  readonly restMs: number
  readonly listener: RunListener
}

type RunListener = {
  /** Every event but endings, with the times of the session. */
  heard(event: EngineEvent): void
  ended(): void
  failed(how: RunFailure, error: EngineError): void
}

/** `stalled`: it had work and made no progress for too long. */
export type RunFailure = 'failed' | 'stalled'

/** Opens a session of an engine; it can wait there until it is begun. */
export async function openEngineRun(request: RunRequest): Promise<EngineRun> {
  let run: EngineRun | null = null
  let isSpent = false
  const opened = await request.pool.open(request.choice, {
    ...request.options,
    signal: request.signal,
    listener(event) {
      if (run !== null) run.hear(event)
      else isSpent ||= event.type === 'failed' || event.type === 'ended'
    },
  })
  if (isSpent) throw new EngineError('broken', 'it ended as soon as it was open')
  run = new EngineRun(opened)
  return run
}

/** One session of one engine: where it stands on the timeline, and whether it gets on. */
export class EngineRun {
  readonly engine: Engine
  readonly #session: OpenedSession['session']
  #isOver = false
  #start: RunStart | null = null
  #bridge: RateBridge | null = null
  #watchdog: Watchdog | null = null
  #hasWork = false
  #writtenSamples = 0
  #processedMs = 0
  #partialText = ''
  /** A `finalized` or `ended` is still to come. */
  #isAsked = false

  constructor({ engine, session }: OpenedSession) {
    this.engine = engine
    this.#session = session
  }

  begin(start: RunStart): void {
    this.#start = start
    this.#bridge = createRateBridge(start.timescale.sampleRateHz, this.engine.sampleRateHz)
    this.#processedMs = Math.floor(this.originMs())
    this.#watchdog = new Watchdog(start.stallMs, () =>
      this.#fail('stalled', new EngineError('broken', 'it makes no progress')),
    )
  }

  /** It ended, or was aborted. */
  isOver(): boolean {
    return this.#isOver
  }

  /** Where it began on the timeline of the session: not a whole number. */
  originMs(): number {
    return this.#start === null ? 0 : this.#exactMs(this.#start.position)
  }

  /** What it was given, since its own beginning. */
  writtenMs(): number {
    return this.#start === null ? 0 : this.#start.timescale.toMs(this.#writtenSamples)
  }

  /** What it has taken in, on the timeline of the session. */
  processedMs(): number {
    return this.#processedMs
  }

  /** What it was given and has not taken in, never less than it is. */
  inFlightMs(): number {
    return this.originMs() + this.#exactMs(this.#writtenSamples) - this.#processedMs
  }

  write(samples: Int16Array): void {
    this.#writtenSamples += samples.length
    const bridged = this.#bridge?.push(samples) ?? samples
    this.#watchWork(false)
    if (bridged.length > 0) this.#session.write(bridged)
  }

  finalize(): void {
    this.#isAsked = true
    this.#watchWork(false)
    this.#session.finalize()
  }

  end(): void {
    const rest = this.#bridge?.flush()
    this.#isAsked = true
    this.#watchWork(false)
    if (rest !== undefined && rest.length > 0) this.#session.write(rest)
    this.#session.end()
  }

  abort(): void {
    if (this.#isOver) return
    this.#close()
    this.#session.abort()
  }

  hear(event: EngineEvent): void {
    if (this.#isOver) return
    if (event.type === 'failed') this.#fail('failed', event.error)
    else if (event.type === 'ended') this.#close(() => this.#start?.listener.ended())
    else {
      const shifted = shiftEvent(event, this.originMs())
      this.#watchWork(this.#note(shifted))
      this.#start?.listener.heard(shifted)
    }
  }

  /** Returns whether the event shows that the engine gets on. */
  #note(event: EngineEvent): boolean {
    switch (event.type) {
      case 'partial': {
        const isNew = event.text !== this.#partialText
        this.#partialText = event.text
        return isNew
      }
      case 'progress':
        return this.#moveTo(event.processedMs)
      case 'final':
        this.#moveTo(event.endMs ?? 0)
        return true
      case 'finalized':
        this.#isAsked = false
        return true
      default:
        return false
    }
  }

  #moveTo(processedMs: number): boolean {
    const givenMs = this.originMs() + this.#exactMs(this.#writtenSamples)
    const reachedMs = Math.min(processedMs, Math.floor(givenMs))
    if (reachedMs <= this.#processedMs) return false
    this.#processedMs = reachedMs
    return true
  }

  #exactMs(samples: number): number {
    return (samples * 1000) / (this.#start?.timescale.sampleRateHz ?? 1)
  }

  #watchWork(hasMoved: boolean): void {
    const hasWork = this.#isAsked || this.inFlightMs() > (this.#start?.restMs ?? 0)
    if (hasWork && (hasMoved || !this.#hasWork)) this.#watchdog?.begin()
    if (!hasWork) this.#watchdog?.end()
    this.#hasWork = hasWork
  }

  #fail(how: RunFailure, error: EngineError): void {
    if (how === 'stalled') this.#session.abort()
    this.#close(() => this.#start?.listener.failed(how, error))
  }

  #close(tell?: () => void): void {
    this.#isOver = true
    this.#watchdog?.stop()
    tell?.()
  }
}
