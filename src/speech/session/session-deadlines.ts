import type { Config } from '#config/schema.ts'

/** Why a session must end. `client_lost`: the client did not reconnect in time. */
export type ExpiredDeadline =
  | 'idle_timeout'
  | 'max_session'
  | 'finalize_timeout'
  | 'slow_consumer'
  | 'client_lost'

type SessionState = {
  readonly isAttached: boolean
  /** Whether the client is paused or its audio still waits. */
  readonly isHeldUp: boolean
  readonly acceptsAudio: boolean
  readonly isReaderFull: boolean
}

type Limits = Pick<Config['speech'], 'idleMs' | 'sessionMsMax' | 'resumeMs' | 'readerStallMs'>

/** The deadlines of one session. It has no timer: one sweep checks all sessions. */
export class SessionDeadlines {
  readonly #limits: Limits
  readonly #startedAt = performance.now()
  #receivedAt = this.#startedAt
  #attachedAt = this.#startedAt
  #readerMovedAt = this.#startedAt
  #finalsBy = Number.POSITIVE_INFINITY

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** A message arrived from the client. */
  messageReceived(): void {
    this.#receivedAt = performance.now()
  }

  /** All audio was processed: the last finals must arrive within `limitMs`. */
  expectFinalsWithin(limitMs: number): void {
    this.#finalsBy = Math.min(this.#finalsBy, performance.now() + limitMs)
  }

  elapsedMs(): number {
    return performance.now() - this.#startedAt
  }

  /** The deadline that has expired; null if none. */
  check(state: SessionState): ExpiredDeadline | null {
    const { isAttached, isHeldUp, acceptsAudio, isReaderFull } = state
    const now = performance.now()
    const limits = this.#limits
    if (isAttached) this.#attachedAt = now
    // A client whose messages are not read is not idle.
    if (!isAttached || isHeldUp) this.#receivedAt = now
    if (!isAttached || !isReaderFull) this.#readerMovedAt = now
    if (!isAttached && now - this.#attachedAt >= limits.resumeMs) return 'client_lost'
    if (now >= this.#finalsBy) return 'finalize_timeout'
    if (now - this.#readerMovedAt >= limits.readerStallMs) return 'slow_consumer'
    if (!acceptsAudio) return null
    if (now - this.#startedAt >= limits.sessionMsMax) return 'max_session'
    if (now - this.#receivedAt >= limits.idleMs) return 'idle_timeout'
    return null
  }
}
