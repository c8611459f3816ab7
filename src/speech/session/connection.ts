import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import type { Language } from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import { handshakeRequired, type ResumeClaim, readHandshake } from './client-frames.ts'
import { type Closer, createCloser } from './closer.ts'
import { callerFault, draining, handshakeTimeout, tooLarge } from './faults.ts'
import type { Wire } from './outbox.ts'
import { readSessionQuery, type SessionQuery } from './query.ts'
import { renderSessionError } from './render-frames.ts'
import { renderFrame } from './server-frames.ts'
import type { Link, SessionStart, SpeechSession } from './session.ts'
import { SessionError } from './session-error.ts'

/** What a client brought to the upgrade. */
export type Knock = {
  readonly parameters: URLSearchParams
  readonly caller: Promise<Principal>
  readonly requestId: string
}

export type ConnectionDeps = {
  readonly settings: Config['speech']
  readonly languages: readonly Language[]
  readonly log: Log
  /** Throws a `SessionError`, as the next two do; null for somebody who is not known yet. */
  readonly admit: (userId: string | null) => void
  readonly begin: (start: SessionStart) => SpeechSession
  readonly find: (claim: ResumeClaim, claimant: Claimant) => SpeechSession
  readonly closed: (connection: Connection) => void
}

type Claimant = { readonly userId: string; readonly query: SessionQuery }

/** Text is short; only audio may be as long as a message may be. */
const textCharsMax = 65_536

/** One socket: who is at it, their first message, and then the session that it belongs to. */
export class Connection {
  readonly #deps: ConnectionDeps
  readonly #knock: Knock
  readonly #wire: Wire
  readonly #closer: Closer
  #isOpen = true
  #caller: Claimant | null = null
  #session: SpeechSession | null = null
  #handshakeBy = Number.POSITIVE_INFINITY

  constructor(deps: ConnectionDeps, knock: Knock, wire: Wire) {
    this.#deps = deps
    this.#knock = knock
    this.#wire = wire
    this.#closer = createCloser(wire)
  }

  open(): void {
    // It may have been refused already, by a process that stops.
    if (this.#closer.isClosing()) return
    try {
      const query = readSessionQuery(this.#knock.parameters, this.#deps.languages)
      this.#deps.admit(null)
      // Nothing is read from a caller whom we do not know yet.
      this.#wire.pause()
      void this.#meet(query)
    } catch (error) {
      this.#refuse(error)
    }
  }

  receive(message: string | Uint8Array): void {
    if (this.#closer.isClosing()) return
    try {
      this.#take(message)
    } catch (error) {
      if (this.#session === null) this.#refuse(error)
      else this.#session.fail(error)
    }
  }

  drained(): void {
    this.#session?.drained()
  }

  closed(closeCode: number): void {
    this.#isOpen = false
    this.#session?.lost(closeCode)
    this.#session = null
    this.#deps.closed(this)
  }

  /** Takes no more work, and closes once the work that runs is over. */
  drain(): void {
    if (this.#session === null) this.#refuse(draining())
    else this.#session.drain()
  }

  isBusy(): boolean {
    return this.#session?.isBusy() ?? (this.#isOpen && this.#wire.getBufferedAmount() > 0)
  }

  look(): void {
    this.#closer.look()
    // While it is live, it is looked after with all others.
    if (this.#session?.isOver()) this.#session.look()
    if (this.#session !== null || performance.now() < this.#handshakeBy) return
    this.#refuse(handshakeTimeout(this.#deps.settings.handshakeMs))
  }

  /** The caller, while they have not begun a session. */
  waitingUser(): string | null {
    if (this.#session !== null || this.#closer.isClosing()) return null
    return this.#caller?.userId ?? null
  }

  async #meet(query: SessionQuery): Promise<void> {
    try {
      const { userId } = await this.#knock.caller
      if (!this.#isOpen || this.#closer.isClosing()) return
      this.#deps.admit(userId)
      this.#caller = { query, userId }
      this.#handshakeBy = performance.now() + this.#deps.settings.handshakeMs
      this.#wire.resume()
    } catch (error) {
      this.#refuse(error)
    }
  }

  #take(message: string | Uint8Array): void {
    const { frameBytesMax } = this.#deps.settings
    const lengthMax = typeof message === 'string' ? textCharsMax : frameBytesMax
    if (message.length > lengthMax) throw tooLarge(lengthMax)
    if (this.#session === null) this.#begin(message)
    else this.#session.receive(message)
  }

  #begin(message: string | Uint8Array): void {
    if (this.#caller === null) return
    if (typeof message !== 'string') throw handshakeRequired()
    const handshake = readHandshake(message, this.#caller.query)
    const claim = handshake.resume
    // It is ours before it speaks, for it may close us at once.
    if (claim === null) {
      const { requestId } = this.#knock
      this.#session = this.#deps.begin({ ...this.#caller, handshake, requestId })
      this.#session.open(this.#link())
    } else {
      this.#session = this.#deps.find(claim, this.#caller)
      this.#session.resume(this.#link(), claim.lastSeq)
    }
  }

  #link(): Link {
    return {
      wire: this.#wire,
      finish: (closeCode, reason) => this.#closer.close(closeCode, reason),
      supersede: (frame, error) => {
        this.#session = null
        this.#wire.sendText(frame)
        this.#closer.close(error.closeCode, error.code)
      },
    }
  }

  #refuse(cause: unknown): void {
    if (!this.#isOpen || this.#closer.isClosing()) return
    const error = cause instanceof SessionError ? cause : callerFault(cause)
    this.#deps.log.info('speech session refused', {
      request_id: this.#knock.requestId,
      code: error.code,
      reason: error.message,
      ...(error.cause === undefined ? {} : { cause: error.cause }),
    })
    this.#wire.sendText(renderFrame(renderSessionError(error, null), 1))
    this.#closer.close(error.closeCode, error.code)
  }
}
