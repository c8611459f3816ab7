import type { Exchange } from '#lib/exchange.ts'
import { readControl, readHandshake } from './client-frames.ts'
import type { Dialect, DialectLink, OpenDialect } from './dialect.ts'
import { type ClientSocket, countSent } from './outbox.ts'
import { readSessionQuery, type SessionQuery } from './query.ts'
import { renderSessionError } from './render-frames.ts'
import { renderFrame } from './server-frames.ts'
import type { SessionContext, SpeechSession } from './session.ts'
import { exchangeErrorOf, fromRequestError, SessionError, sessionError } from './session-error.ts'
import type { SpeechSessions } from './sessions.ts'

/** The upgrade request of a client. */
export type UpgradeRequest = {
  readonly parameters: URLSearchParams
  readonly exchange: Exchange
  /** Rejects if the client is not authorised. */
  readonly context: Promise<SessionContext>
  /** Of another protocol than that of `/v1/stt`. */
  readonly dialect?: OpenDialect
}

/** Audio messages may be longer than text messages. */
const textCharsMax = 65_536
/**
 * How long unread input is read before closing. Without it, the client would receive a TCP reset
 * instead of the last frames.
 */
const lingerMs = 200
const closedNormally = 1000

/**
 * One client socket: authorisation, handshake, and then the session that it is attached to. Owns
 * the closing of the socket.
 */
export class Connection {
  readonly socket: ClientSocket
  readonly #sessions: SpeechSessions
  readonly #request: UpgradeRequest
  #isOpen = true
  #isClosing = false
  #closeLater: { readonly at: number; readonly close: () => void } | null = null
  readonly #dialect: Dialect | null
  /** `query`: null with a dialect, which reads its own. */
  #admitted: { readonly context: SessionContext; readonly query: SessionQuery | null } | null = null
  #session: SpeechSession | null = null
  #handshakeBy = Number.POSITIVE_INFINITY

  constructor(sessions: SpeechSessions, request: UpgradeRequest, socket: ClientSocket) {
    this.#sessions = sessions
    this.#request = request
    this.socket = countSent(socket, request.exchange)
    this.#dialect = request.dialect?.(this.#dialectLink()) ?? null
  }

  open(): void {
    // A draining process may have closed it already.
    if (this.#isClosing) return
    try {
      const query =
        this.#dialect === null
          ? readSessionQuery(this.#request.parameters, this.#sessions.languages())
          : null
      this.#sessions.admit(null)
      // Nothing is read before the client is authorised.
      this.socket.pause()
      void this.#authorize(query)
    } catch (error) {
      this.#reject(error)
    }
  }

  receive(message: string | Uint8Array): void {
    if (this.#isClosing) return
    try {
      const { frameBytesMax } = this.#sessions.settings
      const charsMax = this.#dialect?.textCharsMax ?? textCharsMax
      const lengthMax = typeof message === 'string' ? charsMax : frameBytesMax
      if (message.length > lengthMax) {
        const unit = typeof message === 'string' ? 'characters' : 'bytes; send it in parts'
        const fault = `A message of this kind may have at most ${lengthMax} ${unit}.`
        throw new SessionError('frame_too_large', fault, { details: { max: lengthMax } })
      }
      if (this.#dialect !== null) this.#translate(this.#dialect, message)
      else if (this.#session === null) this.#onHandshake(message)
      else this.#session.receive(typeof message === 'string' ? readControl(message) : message)
    } catch (error) {
      if (this.#session === null) this.#reject(error)
      else this.#session.fail(error)
    }
  }

  onDrain(): void {
    this.#session?.onDrain()
  }

  onClose(closeCode: number): void {
    this.#isOpen = false
    this.#session?.onDisconnect(closeCode)
    this.#session = null
    this.#sessions.disconnected(this)
  }

  /** Accepts no more work; closes when the work in progress has finished. */
  drain(): void {
    if (this.#session === null) this.#reject(sessionError('draining'))
    else this.#session.drain()
  }

  /** The credential is no longer valid. */
  refuse(cause: unknown): void {
    if (this.#session === null) this.#reject(cause)
    else this.#session.fail(fromRequestError(cause))
  }

  isBusy(): boolean {
    return this.#session?.isBusy() ?? (this.#isOpen && this.socket.getBufferedAmount() > 0)
  }

  /** Checks the deadlines; called periodically. */
  tick(): void {
    if (this.#closeLater !== null && performance.now() >= this.#closeLater.at) {
      this.#closeLater.close()
    }
    // Live sessions are checked by `SpeechSessions`.
    if (this.#session?.isOver()) this.#session.tick()
    if (this.#session !== null || performance.now() < this.#handshakeBy) return
    const isNative = this.#dialect === null
    this.#reject(isNative ? this.#handshakeTimeout() : sessionError('idle_timeout'))
  }

  #handshakeTimeout(): SessionError {
    const { handshakeMs } = this.#sessions.settings
    const message = `The first message did not arrive within ${handshakeMs} ms.`
    return new SessionError('handshake_timeout', message)
  }

  /** The user of a connection that has not started a session yet. */
  pendingUserId(): string | null {
    if (this.#session !== null || this.#isClosing) return null
    return this.#admitted?.context.principal.userId ?? null
  }

  /** Closes the socket once. */
  finish(closeCode: number, reason: string): void {
    if (this.#isClosing) return
    this.#isClosing = true
    const { exchange } = this.#request
    exchange.details = { ...exchange.details, close_code: closeCode, close_reason: reason }
    const closing = this.#dialect?.closing(closeCode, reason) ?? { code: closeCode, reason }
    const close = () => this.socket.close(closing.code, closing.reason)
    if (this.socket.isPaused) {
      this.#closeLater = { at: performance.now() + lingerMs, close }
      this.socket.resume()
    } else {
      close()
    }
  }

  /** Sends the last frame and closes, because another connection has resumed the session. */
  supersede(frame: string, { closeCode, code }: SessionError): void {
    this.#session = null
    this.socket.sendText(frame)
    this.finish(closeCode, code)
  }

  #dialectLink(): DialectLink {
    return {
      principal: () => this.#requireAdmitted().principal,
      send: (text) => this.#sendBeside(text),
      start: (start) => {
        const context = this.#requireAdmitted()
        this.#sessions.requireEngine(context.principal, start.query)
        const dialect = this.#dialect
        this.#session = this.#sessions.startSession({ context, dialect, ...start })
        this.#session.open(this)
      },
      input: (message) => this.#session?.receive(message),
      finish: () => this.finish(closedNormally, 'client_end'),
    }
  }

  #requireAdmitted(): SessionContext {
    if (this.#admitted === null) throw sessionError('internal_error')
    return this.#admitted.context
  }

  #translate(dialect: Dialect, message: string | Uint8Array): void {
    if (this.#admitted === null) return
    dialect.receive(message)
    this.#expectMessage()
  }

  /** Answers of a dialect: a client that reads none of them cannot request more. */
  #sendBeside(text: string): void {
    const { readerBytesMax } = this.#sessions.settings
    if (this.socket.getBufferedAmount() > readerBytesMax) throw sessionError('slow_consumer')
    this.socket.sendText(text)
  }

  #expectMessage(): void {
    const { handshakeMs, idleMs } = this.#sessions.settings
    const limitMs = this.#dialect === null ? handshakeMs : (this.#dialect.idleMs ?? idleMs)
    this.#handshakeBy = performance.now() + limitMs
  }

  async #authorize(query: SessionQuery | null): Promise<void> {
    try {
      const context = await this.#request.context
      if (!this.#isOpen || this.#isClosing) return
      if (query !== null) this.#sessions.requireEngine(context.principal, query)
      this.#sessions.admit(context.principal.userId)
      this.#admitted = { context, query }
      this.#expectMessage()
      this.socket.resume()
      this.#dialect?.open()
    } catch (error) {
      this.#reject(error)
    }
  }

  #onHandshake(message: string | Uint8Array): void {
    if (this.#admitted === null || this.#admitted.query === null) return
    if (typeof message !== 'string') throw sessionError('handshake_required')
    const { context, query } = this.#admitted
    const handshake = readHandshake(message, query)
    const { resume } = handshake
    // The session is assigned before it starts, because it may close this connection immediately.
    if (resume === null) {
      this.#session = this.#sessions.startSession({ context, query, handshake, dialect: null })
      this.#session.open(this)
    } else {
      this.#session = this.#sessions.findSession(resume, context.principal.userId, query)
      this.#request.exchange.details = { session_id: this.#session.id, resumed: true }
      this.#session.resume(this, resume.lastSeq)
    }
  }

  #reject(cause: unknown): void {
    if (!this.#isOpen || this.#isClosing) return
    const error = cause instanceof SessionError ? cause : fromRequestError(cause)
    this.#request.exchange.error = exchangeErrorOf(error)
    const frame = renderSessionError(error, null)
    for (const text of this.#dialect?.render(frame) ?? [renderFrame(frame, 1)]) {
      this.socket.sendText(text)
    }
    this.finish(error.closeCode, error.closeReason())
  }
}
