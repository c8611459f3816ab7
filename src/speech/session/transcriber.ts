import type { RecognitionEvent, RecognitionStats } from '#speech/recognition/recognition.ts'
import { warning } from '#speech/recognition/warnings.ts'
import { type AudioPipeline, openAudioPipeline } from './audio-pipeline.ts'
import type { Control } from './client-frames.ts'
import {
  renderEvent,
  renderReady,
  renderSessionError,
  renderStats,
  wholeMs,
} from './render-frames.ts'
import type { SessionStats } from './server-frames.ts'
import type { SpeechSession } from './session.ts'
import { SessionError, sessionError } from './session-error.ts'

export type SessionEnding = {
  readonly closeCode: number
  /** An error code, `client_end`, or why the session was aborted. */
  readonly reason: string
  readonly error: SessionError | null
  /** Null if the session was never ready. */
  readonly stats: SessionStats | null
}

/** Unanswered finalize requests of one client. */
const finalizesMax = 32

/**
 * Processes the messages of one session into frames until its ending, independently of the sockets.
 * Owns the audio pipeline from opening the engine to the ending.
 */
export class Transcriber {
  ending: SessionEnding | null = null
  /** Whether `session_ready` was sent. */
  wasReady = false
  readonly startedAt = performance.now()
  /** When a draining process must have sent the last finals. */
  finalsBy = Number.POSITIVE_INFINITY
  readonly #session: SpeechSession
  readonly #abort = new AbortController()
  #pipeline: AudioPipeline | null = null
  /** Events that arrived before `session_ready` was sent. */
  #earlyEvents: RecognitionEvent[] = []
  #isInputEnded = false
  /** Why the server ended the input. */
  #inputError: SessionError | null = null
  #finalizes = 0
  #queuedMsMax = 0

  constructor(session: SpeechSession) {
    this.#session = session
  }

  /** Opens the engine; the client is paused until then. */
  async start(): Promise<void> {
    const { queue, start, outbox } = this.#session
    queue.hold(true)
    try {
      const pipeline = await openAudioPipeline(this.#session, this, {
        signal: this.#abort.signal,
        listener: (event) => this.#onEvent(event),
      })
      if (this.ending !== null) {
        pipeline.stop()
        return
      }
      this.#pipeline = pipeline
      this.wasReady = true
    } catch (error) {
      this.fail(error)
      return
    }
    this.announceReady(false)
    const { ignored: fields } = start.handshake
    if (fields.length > 0) outbox.push(warning('unknown_fields', { fields }))
    for (const event of this.#earlyEvents.splice(0)) this.#onEvent(event)
    queue.hold(false)
    queue.pauseIfFull()
    this.run()
  }

  /** Sends `session_ready`, on start and after the client has resumed. */
  announceReady(isResumed: boolean): void {
    if (this.#pipeline === null) return
    const { recognition } = this.#pipeline
    this.#session.outbox.push(renderReady(this.#session, recognition, isResumed))
  }

  receive(message: Control | Uint8Array): void {
    if (this.ending !== null) return
    try {
      if (message instanceof Uint8Array) this.#onAudio(message)
      else this.#onControl(message)
    } catch (error) {
      this.fail(error)
    }
  }

  /** Continues after new input, or when frames were sent to the client. */
  run(): void {
    this.#pipeline?.run()
  }

  /** Accepts no more input. Queued audio is finished first, then the error is sent, if any. */
  endInput(error: SessionError | null) {
    if (this.ending !== null) return
    if (error !== null && this.#pipeline === null) return this.fail(error)
    if (this.#isInputEnded) return
    this.#isInputEnded = true
    this.#inputError = error
    this.#session.queue.pushMarker({ type: 'end' })
    this.#pipeline?.recognition.expectFinals()
    this.run()
  }

  /** Fails because of a deadline; an earlier reason for the end of input takes precedence. */
  expire(error: SessionError): void {
    this.fail(this.#inputError ?? error)
  }

  fail(cause: unknown, stats?: RecognitionStats): void {
    if (this.ending !== null) return
    const error = cause instanceof SessionError ? cause : sessionError('internal_error', cause)
    const sessionStats = this.#renderStats(stats)
    this.#session.outbox.push(renderSessionError(error, sessionStats))
    const { closeCode, code: reason } = error
    this.#finish({ closeCode, reason, error, stats: sessionStats })
  }

  /** Ends the session without a frame. */
  abort(reason: string): void {
    if (this.ending !== null) return
    this.#finish({ closeCode: 1011, reason, error: null, stats: this.#renderStats() })
  }

  /** The last finals must arrive within `limitMs`. */
  expectFinalsWithin(limitMs: number): void {
    this.finalsBy = Math.min(this.finalsBy, performance.now() + limitMs)
  }

  /** Called periodically. */
  tick(): void {
    this.#pipeline?.recognition.checkLag()
    this.acknowledge()
  }

  /** Whether the audio so far does not end in the middle of speech. */
  isQuiet(): boolean {
    return this.#pipeline?.recognition.isQuiet() ?? true
  }

  acceptsAudio(): boolean {
    return this.#pipeline !== null && !this.#isInputEnded
  }

  /** Sends an acknowledgement if the client uses credit and one is due. */
  acknowledge(): void {
    const pipeline = this.#pipeline
    if (pipeline === null || this.ending !== null) return
    const ack = this.#session.queue.nextAck(() => pipeline.recognition.progress())
    if (ack !== null) this.#session.outbox.push(ack)
  }

  /** The pipeline has written all audio up to the end of the input. */
  endRecognition(): void {
    this.#pipeline?.recognition.end()
  }

  #onEvent(event: RecognitionEvent): void {
    if (this.ending !== null) return
    if (this.#pipeline === null) {
      this.#earlyEvents.push(event)
      return
    }
    const { outbox, start } = this.#session
    switch (event.type) {
      case 'writable':
        this.run()
        break
      case 'progress':
        this.acknowledge()
        break
      case 'ended':
        this.#onRecognitionEnded(event.stats)
        break
      case 'failed':
        this.fail(this.#inputError ?? sessionError(event.code), event.stats)
        break
      case 'finalized':
        this.#finalizes--
        outbox.push(renderEvent(event, start))
        break
      default:
        outbox.push(renderEvent(event, start))
    }
  }

  #onControl(control: Control): void {
    if (control.type === 'session_end') this.endInput(null)
    if (control.type !== 'finalize' || this.#isInputEnded) return
    if (++this.#finalizes > finalizesMax) {
      const message = `At most ${finalizesMax} finalize requests may be outstanding.`
      throw new SessionError('flow_violation', message)
    }
    this.#session.queue.pushMarker({ type: 'finalize', id: control.id ?? '' })
    this.run()
  }

  /** An empty message marks the end of the audio. */
  #onAudio(bytes: Uint8Array) {
    const { queue } = this.#session
    if (bytes.length === 0) return this.endInput(null)
    if (this.#isInputEnded) {
      queue.receivedBytes += bytes.length
      return
    }
    queue.push(bytes)
    this.run()
    if (this.ending !== null) return
    queue.pauseIfFull()
    const queuedMs = queue.queuedMs(this.#pipeline?.decodedMs() ?? 0)
    this.#queuedMsMax = Math.max(this.#queuedMsMax, queuedMs)
  }

  #onRecognitionEnded(recognitionStats: RecognitionStats) {
    if (this.#inputError !== null) return this.fail(this.#inputError, recognitionStats)
    const stats = this.#renderStats(recognitionStats)
    if (stats === null) return
    this.#session.outbox.push({ type: 'session_end', reason: 'client_end', stats })
    this.#finish({ closeCode: 1000, reason: 'client_end', error: null, stats })
  }

  #finish(ending: SessionEnding): void {
    this.ending = ending
    this.#abort.abort()
    this.#pipeline?.stop()
    // The pipeline holds audio, and an ended session may be kept for a while.
    this.#pipeline = null
    this.#session.queue.close()
    this.#session.onEnded(ending)
  }

  /** Null if the session was never ready. */
  #renderStats(stats?: RecognitionStats): SessionStats | null {
    const pipeline = this.#pipeline
    if (pipeline === null) return null
    const { queue, resumes, outbox } = this.#session
    return {
      ...renderStats(stats ?? pipeline.stop(), pipeline.decoder.faults),
      ...queue.counts(),
      ...outbox.partials,
      wall_ms: wholeMs(performance.now() - this.startedAt),
      max_queued_ms: wholeMs(this.#queuedMsMax),
      resumes,
    }
  }
}
