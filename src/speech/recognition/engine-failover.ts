import type { Engine, EngineError, EngineEvent } from '#speech/engine.ts'
import { AudioSender } from './audio-sender.ts'
import type { ConnectionFailure, EngineConnection, EngineRequest } from './engine-connection.ts'
import { EngineSearch } from './engine-search.ts'
import type { AudioLedger } from './ledger.ts'
import type { RecognitionDeps, RecognitionEvent } from './recognition.ts'
import type { SpeechActivity } from './speech-activity.ts'
import { audioLost, engineRollover, type RolloverReason, warning } from './warnings.ts'

/** The parts of a recognition that its failover uses. */
export type FailoverContext = RecognitionDeps & {
  readonly request: EngineRequest
  readonly activity: SpeechActivity
  readonly ledger: AudioLedger
}

export type FailoverListener = {
  /** Every event except endings and `finalized`, with times of the session. */
  received(event: EngineEvent): void
  /** The engine has returned all finals of this audio; false: it is mute and to be replaced. */
  flushed(untilMs: number): boolean
  /** Whether finals of the audio sent so far are needed before the engine receives more. */
  needsFinals(connection: EngineConnection): boolean
  /** A new engine continues at this time. */
  restarted(atMs: number): void
  /** `writable`, `finalized` and warnings, for the client. */
  emit(event: RecognitionEvent): void
  ended(): void
  failed(reason: RolloverReason): void
}

/** The last part of an engine's session limit, in which a pause is awaited to change engines. */
const limitMarginShare = 1 / 8
const limitMarginMsMax = 30_000
/**
 * How far the next engine starts before the end of the previous one: in a pause because speech is
 * detected late, during speech because the last word is cut.
 */
const quietOverlapMs = 200
const speechOverlapMs = 1_500

/**
 * Sends the audio of one session through consecutive engine connections. After a failure a new
 * engine continues where finals end. Before an engine's session limit it is replaced in a pause:
 * the old connection returns its last finals while the new one opens. Owns the current connection,
 * the search for the next one, and the audio sender.
 */
export class EngineFailover {
  /** The current engine, or the last one. */
  engine: Engine
  /** Connections so far. */
  sessions = 0
  readonly sender: AudioSender
  readonly #context: FailoverContext
  readonly #listener: FailoverListener
  readonly #search: EngineSearch
  #connection: EngineConnection | null = null
  /** `end` was called on the connection. */
  #isConnectionEnding = false
  /** Where the next engine starts if this one ends normally; null: where finals end. */
  #seam: number | null = null
  #reason: RolloverReason = 'failed'
  #isOver = false
  #wasFull = false
  #hasWarnedWaiting = false

  constructor(first: EngineConnection, context: FailoverContext, listener: FailoverListener) {
    const { request, settings } = context
    this.#context = context
    this.#listener = listener
    this.engine = first.engine
    this.sender = new AudioSender(first.engine.sampleRateHz, settings, {
      needsFinals: (connection) => listener.needsFinals(connection),
      leavesNearLimit: (connection) => this.#leaveNearLimit(connection),
      endForFinals: () => this.#endForFinals(),
    })
    this.#search = new EngineSearch(request, settings, {
      found: () => this.#takeOver(),
      retrying: () => this.#warnWaiting(),
      failed: (error) => this.#onSearchFailed(error),
    })
    this.#start(first, 0)
  }

  /** What the current engine has processed; null without one. */
  processedMs(): number | null {
    return this.#connection?.processedMs ?? null
  }

  writableMs(): number {
    const writableMs = this.sender.writableMs()
    this.#wasFull ||= writableMs === 0
    return writableMs
  }

  write(samples: Int16Array): void {
    this.sender.append(samples)
    this.#send()
  }

  finalize(id: string): void {
    this.sender.requestFinals(id)
    this.#send()
  }

  end(): void {
    this.sender.setEnd()
    this.#send()
  }

  /** Whether the failure budget allows another engine. */
  mayReplace(): boolean {
    return this.#search.hasBudget()
  }

  /** Aborts the current engine and replays audio without a final to a new one. */
  replaceMute(): void {
    this.#connection?.abort()
    this.#onLost('mute')
  }

  close(): void {
    this.#isOver = true
    this.#search.stop()
    this.#connection?.abort()
    this.#detach()
  }

  #start(connection: EngineConnection, position: number): void {
    this.#connection = connection
    this.engine = connection.engine
    this.sessions += 1
    this.sender.attach(connection, position)
    connection.start(position, this.sender.sampleRateHz, this.#context.settings, {
      received: (event) => this.#onEvent(event),
      ended: () => this.#onEnded(),
      failed: (failure, error) => this.#onFailed(failure, error),
    })
  }

  #detach(): void {
    this.#connection = null
    this.#isConnectionEnding = false
    this.sender.detach()
  }

  #send(): void {
    const isComplete = !this.#isConnectionEnding && this.sender.send()
    if (isComplete && !this.#isConnectionEnding) this.#endConnection()
    if (!this.#wasFull || this.sender.writableMs() === 0) return
    this.#wasFull = false
    this.#listener.emit({ type: 'writable' })
  }

  #endConnection(): void {
    this.#isConnectionEnding = true
    this.#connection?.end()
  }

  #leaveNearLimit(connection: EngineConnection): boolean {
    if (this.#isConnectionEnding) return true
    const limitMs = connection.engine.limits.sessionMsMax
    const remainingMs = limitMs - connection.writtenMs()
    if (remainingMs > Math.min(limitMarginMsMax, limitMs * limitMarginShare)) return false
    const sentMs = this.sender.sentMs()
    const { activity, ledger } = this.#context
    const isQuiet = activity.isQuietAt(sentMs)
    if (!isQuiet && remainingMs > 0) return false
    this.#reason = 'limit'
    // During speech the next engine receives the whole utterance, so that no word is cut, unless
    // the utterance is too long to be worth replaying.
    if (isQuiet || sentMs - ledger.settledMs > limitMs / 2) {
      const overlapMs = Math.min(isQuiet ? quietOverlapMs : speechOverlapMs, limitMs / 4)
      this.#seam = this.sender.sentUntil - this.sender.toSamples(overlapMs)
      this.#endConnection()
    } else {
      this.#seam = null
      connection.abort()
      this.#detach()
    }
    this.#search.start()
    return true
  }

  /** The next engine continues exactly where the client requested finals. */
  #endForFinals(): void {
    this.#reason = 'finalize'
    this.#seam = this.sender.sentUntil
    this.#endConnection()
    this.#search.start()
  }

  #onEvent(event: EngineEvent): void {
    if (event.type === 'finalized') {
      const position = this.sender.finalizeAnswered()
      if (this.#listener.flushed(this.sender.toMs(position))) this.#reportFinalized(position)
      else this.replaceMute()
    } else {
      this.#search.received(event)
      this.#listener.received(event)
    }
    this.#send()
  }

  #onEnded() {
    if (!this.#isConnectionEnding) return this.#onLost('failed')
    if (!this.#listener.flushed(this.sender.sentMs())) return this.#onLost('mute')
    // Without a request of the client, the next engine receives speech again that was cut or omitted.
    const isOwn = this.#reason === 'finalize' && this.sender.finalizingId() === null
    if (isOwn && this.#context.ledger.isSpeechMissing(this.sender.sentMs())) this.#seam = null
    this.#reportFinalized(this.sender.sentUntil)
    this.#detach()
    if (this.sender.isComplete()) this.#finish()
    else this.#takeOver()
  }

  #onFailed(failure: ConnectionFailure, error: EngineError): void {
    const fields = { engine: this.engine.name, how: failure, error }
    this.#context.log.warn('speech engine session failed', fields)
    if (failure === 'stalled') this.#search.stalled()
    this.#onLost(error.kind === 'limit' ? 'limit' : failure)
  }

  /** The connection is gone without having answered all audio that it received. */
  #onLost(reason: RolloverReason): void {
    if (this.#isOver) return
    const wasComplete = this.sender.isComplete()
    this.#detach()
    this.#seam = null
    this.#reason = reason
    if (wasComplete && this.#uncoveredFrom() >= this.sender.buffer.end) {
      this.#finish()
    } else if (this.mayReplace()) {
      this.#search.startAfterFailure(this.engine.name)
      this.#takeOver()
    } else {
      this.#listener.failed(reason)
    }
  }

  /** Continues with the next connection, if one was found and the previous one has ended. */
  #takeOver() {
    if (this.#connection !== null || this.#isOver) return
    const connection = this.#search.take()
    if (connection === null) return
    const { name: from } = this.engine
    if (connection.isOver) {
      this.engine = connection.engine
      return this.#onLost('failed')
    }
    const wanted = Math.max(this.#seam ?? 0, this.#uncoveredFrom())
    const position = Math.max(wanted, this.sender.buffer.start)
    const atMs = this.sender.toMs(position)
    const replayedMs = this.sender.toMs(this.sender.buffer.end - position)
    this.#seam = null
    this.#start(connection, position)
    this.#hasWarnedWaiting = false
    // Audio that is no longer buffered cannot be sent to the new engine.
    const lost = position > wanted ? this.#context.ledger.writeOff(atMs) : []
    if (lost.length > 0) this.#listener.emit(audioLost(lost))
    this.#listener.restarted(atMs)
    const to = connection.engine.name
    if (this.#reason !== 'finalize') {
      this.#listener.emit(engineRollover({ reason: this.#reason, from, to, atMs, replayedMs }))
    }
    this.#reportFinalized(position)
    this.#send()
  }

  #warnWaiting(): void {
    if (this.#connection !== null || this.#hasWarnedWaiting) return
    this.#hasWarnedWaiting = true
    this.#listener.emit(warning('engine_waiting', {}))
  }

  #onSearchFailed(error: EngineError): void {
    this.#context.log.error('no speech engine available', { error })
    // While the previous connection still returns finals there is time for another search.
    if (this.#connection === null) this.#listener.failed(this.#reason)
    else this.#search.start()
  }

  #finish(): void {
    this.#search.stop()
    this.#reportFinalized(this.sender.buffer.end)
    this.#listener.ended()
  }

  #reportFinalized(position: number): void {
    for (const { id, position: at } of this.sender.takeFinalizes(position)) {
      const audioMs = this.sender.toMs(at)
      if (id !== null) this.#listener.emit({ type: 'finalized', id, audioMs })
    }
  }

  #uncoveredFrom(): number {
    return this.sender.toSamples(this.#context.ledger.settledMs)
  }
}
