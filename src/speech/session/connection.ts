import type { Exchange } from '#lib/exchange.ts'
import { readHandshake } from './client-frames.ts'
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
}

/** Audio messages may be longer than text messages. */
const textCharsMax = 65_536
/**
 * How long unread input is read before closing. Without it, the client would receive a TCP reset
 * instead of the last frames.
 */
const lingerMs = 200

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
  #admitted: { readonly context: SessionContext; readonly query: SessionQuery } | null = null
  #session: SpeechSession | null = null
  #handshakeBy = Number.POSITIVE_INFINITY

  constructor(sessions: SpeechSessions, request: UpgradeRequest, socket: ClientSocket) {
    this.#sessions = sessions
    this.#request = request
    this.socket = countSent(socket, request.exchange)
  }

  open(): void {
    // A draining process may have closed it already.
    if (this.#isClosing) return
    try {
      const query = readSessionQuery(this.#request.parameters, this.#sessions.languages())
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
      const lengthMax = typeof message === 'string' ? textCharsMax : frameBytesMax
      if (message.length > lengthMax) {
        const unit = typeof message === 'string' ? 'characters' : 'bytes; send it in parts'
        const fault = `A message of this kind may have at most ${lengthMax} ${unit}.`
        throw new SessionError('frame_too_large', fault, { details: { max: lengthMax } })
      }
      if (this.#session === null) this.#onHandshake(message)
      else this.#session.receive(message)
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
    const { handshakeMs } = this.#sessions.settings
    const message = `The first message did not arrive within ${handshakeMs} ms.`
    this.#reject(new SessionError('handshake_timeout', message))
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
    const close = () => this.socket.close(closeCode, reason)
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

  async #authorize(query: SessionQuery): Promise<void> {
    try {
      const context = await this.#request.context
      if (!this.#isOpen || this.#isClosing) return
      this.#sessions.admit(context.principal.userId)
      this.#admitted = { context, query }
      this.#handshakeBy = performance.now() + this.#sessions.settings.handshakeMs
      this.socket.resume()
    } catch (error) {
      this.#reject(error)
    }
  }

  #onHandshake(message: string | Uint8Array): void {
    if (this.#admitted === null) return
    if (typeof message !== 'string') throw sessionError('handshake_required')
    const { context, query } = this.#admitted
    const handshake = readHandshake(message, query)
    const { resume } = handshake
    // The session is assigned before it starts, because it may close this connection immediately.
    if (resume === null) {
      this.#session = this.#sessions.startSession({ context, query, handshake })
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
    this.socket.sendText(renderFrame(renderSessionError(error, null), 1))
    this.finish(error.closeCode, error.closeReason())
  }
}
