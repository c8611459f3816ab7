import type { Config } from '#config/schema.ts'
import { Watchdog } from '#lib/deadline.ts'
import { createResampler, type Resampler } from '#lib/resample.ts'
import {
  type Engine,
  EngineError,
  type EngineEvent,
  type EngineOpenOptions,
  type Span,
  samplesToMs,
} from '#speech/engine.ts'
import type { EngineChoice, EnginePool, OpenedSession } from '#speech/engines/pool.ts'

export type EngineRequest = {
  readonly pool: EnginePool
  readonly choice: EngineChoice
  readonly options: Omit<EngineOpenOptions, 'signal' | 'listener'>
}

type ConnectionListener = {
  /** Every event except endings, with times of the client session. */
  received(event: EngineEvent): void
  ended(): void
  failed(failure: ConnectionFailure, error: EngineError): void
}

/** `stalled`: no progress for `engineStallMs` despite unprocessed audio, longer if it shows life. */
export type ConnectionFailure = 'failed' | 'stalled'

/** Unprocessed audio up to this length does not count as work: engines buffer that much. */
const idleMsMax = 500

/** Opens an engine session, which may stay idle until `start`. Rejects with an `EngineError`. */
export async function openEngineConnection(
  { pool, choice, options }: EngineRequest,
  signal: AbortSignal,
): Promise<EngineConnection> {
  let connection: EngineConnection | null = null
  let hasEnded = false
  const opened = await pool.open(choice, {
    ...options,
    signal,
    listener(event) {
      if (connection !== null) connection.receive(event)
      else hasEnded ||= event.type === 'failed' || event.type === 'ended'
    },
  })
  if (hasEnded) throw new EngineError('broken', 'the session ended as soon as it was open')
  connection = new EngineConnection(opened)
  return connection
}

/**
 * One session of one engine, from opening to its ending. Owns the engine session, the offset between
 * its clock and the client session's, its progress and the stall deadline.
 */
export class EngineConnection {
  readonly engine: Engine
  /** Whether it ended or was aborted. */
  isOver = false
  /** The position that the engine has processed up to, on the session's timeline. */
  processedMs = 0
  readonly #session: OpenedSession['session']
  #listener: ConnectionListener | null = null
  #sampleRateHz = 1
  #originMs = 0
  #idleMs = 0
  /** Null if the engine uses the rate of the session. */
  #resampler: Resampler | null = null
  #watchdog: Watchdog | null = null
  #hasWork = false
  #writtenSamples = 0
  #partialText = ''
  /** A `finalized` or `ended` is outstanding. */
  #isFlushing = false

  constructor({ engine, session }: OpenedSession) {
    this.engine = engine
    this.#session = session
  }

  /**
   * Sends events to `listener` from now on. `position`: the first sample of the session that this
   * engine receives. Samples have the rate `sampleRateHz` and are resampled to the engine's own.
   */
  start(
    position: number,
    sampleRateHz: number,
    { engineStallMs, inFlightMsMax }: Config['speech'],
    listener: ConnectionListener,
  ): void {
    const engineRateHz = this.engine.sampleRateHz
    this.#listener = listener
    this.#sampleRateHz = sampleRateHz
    this.#originMs = this.#exactMs(position)
    this.#idleMs = Math.min(idleMsMax, inFlightMsMax / 2)
    this.processedMs = Math.floor(this.#originMs)
    if (engineRateHz !== sampleRateHz) this.#resampler = createResampler(sampleRateHz, engineRateHz)
    this.#watchdog = new Watchdog(engineStallMs, () =>
      this.#fail('stalled', new EngineError('broken', 'the engine makes no progress')),
    )
  }

  /** Audio written to this engine session. */
  writtenMs(): number {
    return samplesToMs(this.#writtenSamples, this.#sampleRateHz)
  }

  /** Audio written but not processed; never rounded down. */
  inFlightMs(): number {
    return this.#originMs + this.#exactMs(this.#writtenSamples) - this.processedMs
  }

  write(samples: Int16Array): void {
    this.#writtenSamples += samples.length
    const converted =
      this.#resampler === null ? samples : toInt16(this.#resampler.push(Float32Array.from(samples)))
    this.#watchProgress(false)
    if (converted.length > 0) this.#session.write(converted)
  }

  finalize(): void {
    this.#isFlushing = true
    this.#watchProgress(false)
    this.#session.finalize()
  }

  finalizesByEnding(): boolean {
    return this.#session.finalizesByEnding?.() === true
  }

  end(): void {
    this.#isFlushing = true
    this.#watchProgress(false)
    if (this.#resampler !== null) {
      const rest = toInt16(this.#resampler.flush())
      if (rest.length > 0) this.#session.write(rest)
    }
    this.#session.end()
  }

  abort(): void {
    if (this.isOver) return
    this.#close()
    this.#session.abort()
  }

  receive(event: EngineEvent): void {
    if (this.isOver) return
    if (event.type === 'failed') {
      this.#fail('failed', event.error)
    } else if (event.type === 'ended') {
      this.#close()
      this.#listener?.ended()
    } else if (event.type === 'alive') {
      this.#watchdog?.extend()
      this.#listener?.received(event)
    } else {
      const shifted = shiftEvent(event, this.#originMs)
      this.#watchProgress(this.#isProgress(shifted))
      this.#listener?.received(shifted)
    }
  }

  /** Records the event and returns whether it shows progress. */
  #isProgress(event: EngineEvent): boolean {
    switch (event.type) {
      case 'partial': {
        const isNew = event.text !== this.#partialText
        this.#partialText = event.text
        return isNew
      }
      case 'progress':
        return this.#advanceTo(event.processedMs)
      case 'final':
        this.#advanceTo(event.endMs ?? 0)
        return true
      case 'finalized':
        this.#isFlushing = false
        return true
      default:
        return false
    }
  }

  #advanceTo(processedMs: number): boolean {
    const writtenUntilMs = Math.floor(this.#originMs + this.#exactMs(this.#writtenSamples))
    const reachedMs = Math.min(processedMs, writtenUntilMs)
    if (reachedMs <= this.processedMs) return false
    this.processedMs = reachedMs
    return true
  }

  #exactMs(samples: number): number {
    return (samples * 1000) / this.#sampleRateHz
  }

  #watchProgress(hasAdvanced: boolean): void {
    const hasWork = this.#isFlushing || this.inFlightMs() > this.#idleMs
    if (hasWork && (hasAdvanced || !this.#hasWork)) this.#watchdog?.begin()
    if (!hasWork) this.#watchdog?.end()
    this.#hasWork = hasWork
  }

  #fail(failure: ConnectionFailure, error: EngineError): void {
    if (failure === 'stalled') this.#session.abort()
    this.#close()
    this.#listener?.failed(failure, error)
  }

  #close(): void {
    this.isOver = true
    this.#watchdog?.stop()
  }
}

/** Moves an event to the session's timeline, on which its engine started at `originMs`. */
function shiftEvent(event: EngineEvent, originMs: number): EngineEvent {
  const shift = (ms: number) => Math.round(ms + originMs)
  const shiftSpan = ({ startMs, endMs }: Span) => ({
    startMs: startMs === null ? null : shift(startMs),
    endMs: endMs === null ? null : shift(endMs),
  })
  switch (event.type) {
    case 'partial':
      return { ...event, ...shiftSpan(event) }
    case 'final': {
      const words = event.words.map((word) => ({
        ...word,
        startMs: shift(word.startMs),
        endMs: shift(word.endMs),
      }))
      return { ...event, ...shiftSpan(event), words }
    }
    case 'speech-start':
      return { ...event, atMs: shift(event.atMs) }
    case 'progress':
      return { ...event, processedMs: Math.floor(event.processedMs + originMs) }
    default:
      return event
  }
}

function toInt16(samples: Float32Array): Int16Array {
  return Int16Array.from(samples, (sample) =>
    Math.max(-32_768, Math.min(32_767, Math.round(sample))),
  )
}
