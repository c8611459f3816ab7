import { timingSafeEqual } from 'node:crypto'
import type { Config } from '#config/schema.ts'
import { newId } from '#lib/id.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { OpenRecognition } from '#speech/recognition/recognition.ts'
import { warning } from '#speech/recognition/warnings.ts'
import { type AudioBudget, AudioQueue } from './audio-queue.ts'
import type { Control, Handshake, ResumeRequest } from './client-frames.ts'
import type { Connection } from './connection.ts'
import type { Dialect } from './dialect.ts'
import { Outbox } from './outbox.ts'
import type { SessionQuery } from './query.ts'
import { renderSessionError } from './render-frames.ts'
import { renderFrame } from './server-frames.ts'
import { sessionError } from './session-error.ts'
import { type SessionEnding, Transcriber } from './transcriber.ts'

export type SessionDeps = {
  readonly openRecognition: OpenRecognition
  readonly settings: Config['speech']
  /** How long a session may continue when the process drains. */
  readonly drainMs: number
  readonly budget: AudioBudget
}

/** The context of the upgrade request. It has no signal, because a session outlives its sockets. */
export type SessionContext = Omit<RequestContext, 'signal'>

export type SessionStart = {
  readonly context: SessionContext
  readonly query: SessionQuery
  readonly handshake: Handshake
  /** Of a client with another protocol. */
  readonly dialect: Dialect | null
}

type AttachedConnection = Pick<Connection, 'socket' | 'finish' | 'supersede'>

/** Clients that close with one of these codes do not resume. */
const deliberateCloseCodes = [1000, 1001, 1005]
/** A client that sends nothing for this long pauses. */
const pauseMs = 500
/** While a client is not read, its disconnect is only detected by sending. */
const pingMs = 1_000

/**
 * One speech session, from its handshake until it can no longer be resumed. It is attached to one
 * connection at a time, waits for the client to resume after a disconnect, and ends exactly once.
 * Owns the transcriber, the audio queue, the outbox and the deadlines, which have no timer: one sweep
 * checks all sessions.
 */
export class SpeechSession {
  readonly id = newId('stt_')
  readonly resumeToken = newId('')
  readonly deps: SessionDeps
  readonly start: SessionStart
  readonly outbox: Outbox
  readonly queue: AudioQueue
  /** How often the client has resumed it. */
  resumes = 0
  readonly #onEnded: (ending: SessionEnding) => void
  readonly #transcriber = new Transcriber(this)
  #connection: AttachedConnection | null = null
  #endedAt = 0
  #isAborted = false
  /** When the shutdown began. */
  #drainingSince: number | null = null
  #pingedAt = 0
  #receivedAt = performance.now()
  #attachedAt = performance.now()
  /** When the client last read its frames. */
  #readerMovedAt = performance.now()

  /** `onEnded` is called once, after the engine was released. */
  constructor(deps: SessionDeps, start: SessionStart, onEnded: (ending: SessionEnding) => void) {
    this.deps = deps
    this.start = start
    this.#onEnded = onEnded
    const { dialect } = start
    this.outbox = new Outbox(
      deps.settings.resumeCharsMax,
      dialect && ((frame) => dialect.render(frame)),
    )
    this.queue = new AudioQueue(this)
  }

  /** Starts the session on its first connection. */
  open(connection: AttachedConnection): void {
    this.#attach(connection, 0)
    void this.#transcriber.start()
  }

  receive(message: Control | Uint8Array): void {
    this.#receivedAt = performance.now()
    this.#transcriber.receive(message)
  }

  /** Fails the session because of an invalid message. */
  fail(error: unknown): void {
    this.#transcriber.fail(error)
  }

  /** The socket accepts more frames. */
  onDrain(): void {
    this.outbox.flush()
    this.queue.resumeIfDrained()
    this.#transcriber.run()
  }

  onDisconnect(closeCode: number): void {
    this.#detach()
    if (this.isOver()) return
    const isDeliberate = deliberateCloseCodes.includes(closeCode)
    if (isDeliberate && this.start.dialect?.endsByClosing) this.abort('client_end')
    else if (!this.isResumable() || isDeliberate) this.abort('client_left')
    else this.#transcriber.run()
  }

  /** Whether a client may resume it, if only for its last frames. */
  isResumable(): boolean {
    const keepsFrames = this.start.dialect === null && this.deps.settings.resumeMs > 0
    return this.#transcriber.wasReady && !this.#isAborted && keepsFrames
  }

  /** Whether this client may resume this session. */
  matches(resume: ResumeRequest, userId: string, query: SessionQuery): boolean {
    const { context, query: own } = this.start
    const [token, ownToken] = [Buffer.from(resume.token), Buffer.from(this.resumeToken)]
    return (
      this.isResumable() &&
      token.length === ownToken.length &&
      timingSafeEqual(token, ownToken) &&
      userId === context.principal.userId &&
      query.language === own.language &&
      query.encoding === own.encoding &&
      query.engineName === own.engineName &&
      query.sampleRateHz === own.sampleRateHz
    )
  }

  /** Continues on another connection: missed frames first, then `session_ready`. */
  resume(connection: AttachedConnection, lastSeq: number): void {
    this.#supersedeConnection()
    this.#attach(connection, lastSeq)
    const ending = this.#transcriber.ending
    if (ending !== null) {
      this.#closeConnection(ending)
      return
    }
    this.resumes++
    this.#receivedAt = performance.now()
    const { droppedSeq } = this.outbox
    if (droppedSeq > lastSeq) {
      const details = { after_seq: lastSeq, to_seq: droppedSeq }
      this.outbox.push(warning('frames_forgotten', details))
    }
    this.#transcriber.announceReady(true)
    this.queue.pauseIfFull()
  }

  /** Checks the deadlines; called periodically for all sessions. */
  tick(): void {
    // Bun 1.4.5 does not call `drain` if the buffer emptied while a message arrived (measured).
    this.onDrain()
    if (this.isOver()) {
      const isStuck = performance.now() - this.#endedAt >= this.deps.settings.readerStallMs
      if (isStuck) this.#connection?.socket.terminate()
      return
    }
    this.#checkDeadlines()
    this.#pingIfPaused()
    this.#transcriber.tick()
  }

  /** Shutdown: finishes the sentence in progress, and accepts no more after it. */
  drain(): void {
    if (this.#connection === null) {
      this.abort('draining')
      return
    }
    const now = performance.now()
    this.#drainingSince ??= now
    this.#transcriber.expectFinalsWithin(this.deps.drainMs)
    this.#endAtPause(now)
  }

  /** Ends it without a frame; it cannot be resumed. */
  abort(reason: string): void {
    this.#isAborted = true
    this.#transcriber.abort(reason)
  }

  isOver(): boolean {
    return this.#transcriber.ending !== null
  }

  isAttached(): boolean {
    return this.#connection !== null
  }

  /** Whether it is in progress or frames wait for the client. */
  isBusy(): boolean {
    return this.#connection !== null && (!this.isOver() || this.outbox.pendingBytes() > 0)
  }

  /** Whether it ended so long ago that its last frames are no longer kept. */
  isExpired(): boolean {
    return this.isOver() && performance.now() - this.#endedAt >= this.deps.settings.resumeMs
  }

  /** Whether too many frames wait for the client; then its audio is not processed either. */
  isReaderFull(): boolean {
    const { readerBytesMax } = this.deps.settings
    return this.#connection !== null && this.outbox.pendingBytes() > readerBytesMax
  }

  /** The transcriber has released the engine and pushed the last frame. */
  onEnded(ending: SessionEnding): void {
    this.#endedAt = performance.now()
    this.#onEnded(ending)
    this.#closeConnection(ending)
  }

  #attach(connection: AttachedConnection, lastSeq: number): void {
    this.#connection = connection
    this.queue.attach(connection.socket)
    this.outbox.attach(connection.socket, lastSeq)
  }

  #detach(): void {
    this.#connection = null
    this.queue.detach()
    this.outbox.detach()
  }

  #supersedeConnection(): void {
    const connection = this.#connection
    if (connection === null) return
    this.#detach()
    const error = sessionError('session_taken_over')
    const frame = renderFrame(renderSessionError(error, null), this.outbox.takeSeq())
    connection.supersede(frame, error)
  }

  #closeConnection({ closeCode, reason }: SessionEnding): void {
    this.outbox.finish(() => this.#connection?.finish(closeCode, reason))
  }

  #checkDeadlines() {
    const now = performance.now()
    const { sessionMsMax, resumeMs, readerStallMs } = this.deps.settings
    const idleMs = this.start.dialect?.idleMs ?? this.deps.settings.idleMs
    const transcriber = this.#transcriber
    const isAttached = this.#connection !== null
    const isHeldUp = this.queue.isPaused() || this.queue.storedBytes > 0
    if (isAttached) this.#attachedAt = now
    // A client whose messages are not read is not idle.
    if (!isAttached || isHeldUp) this.#receivedAt = now
    if (!isAttached || !this.isReaderFull()) this.#readerMovedAt = now
    if (now - this.#attachedAt >= resumeMs && !isAttached) return this.abort('client_lost')
    if (now >= transcriber.finalsBy) {
      return transcriber.expire(sessionError('draining'))
    }
    if (now - this.#readerMovedAt >= readerStallMs) {
      return transcriber.fail(sessionError('slow_consumer'))
    }
    if (!transcriber.acceptsAudio()) return
    this.#endAtPause(now)
    const isTooLong = now - transcriber.startedAt >= sessionMsMax
    if (isTooLong) transcriber.endInput(sessionError('max_session'))
    else if (now - this.#receivedAt >= idleMs) transcriber.endInput(sessionError('idle_timeout'))
  }

  /** While draining: the other half of the time is for the last finals. */
  #endAtPause(now: number): void {
    if (this.#drainingSince === null) return
    const isOverdue = now - this.#drainingSince >= this.deps.drainMs / 2
    const isPausing = this.#transcriber.isQuiet() || now - this.#receivedAt >= pauseMs
    if (isOverdue || isPausing) this.#transcriber.endInput(sessionError('draining'))
  }

  #pingIfPaused(): void {
    if (!this.queue.isPaused() || performance.now() - this.#pingedAt < pingMs) return
    this.#pingedAt = performance.now()
    this.#connection?.socket.ping()
  }
}
