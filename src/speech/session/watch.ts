import type { Config } from '#config/schema.ts'

/** The deadlines of one session. It has no timer: whoever looks after all sessions asks it. */
export type Watch = {
  /** Something came from the client. */
  heard(): void
  /** The last audio was passed on: finals must come within `limitMs`. */
  finalsWithin(limitMs: number): void
  /** Why the session must end now, null where it may go on. */
  look(state: WatchedState): Verdict | null
  sinceMs(): number
}

type WatchedState = {
  readonly isAttached: boolean
  /** Whether the client is not read, or its audio still waits. */
  readonly isHeldUp: boolean
  readonly takesAudio: boolean
  /** Whether more waits for the client than may. */
  readonly readerIsFull: boolean
}

export type Verdict =
  | 'idle_timeout'
  | 'max_session'
  | 'finalize_timeout'
  | 'slow_consumer'
  /** The client did not come back in time. */
  | 'client_lost'

type Limits = Pick<Config['speech'], 'idleMs' | 'sessionMsMax' | 'resumeMs' | 'readerStallMs'>

export function createWatch(limits: Limits): Watch {
  const startedAt = performance.now()
  let heardAt = startedAt
  let attachedAt = startedAt
  let readerMovedAt = startedAt
  let finalsBy = Number.POSITIVE_INFINITY

  return {
    heard() {
      heardAt = performance.now()
    },
    finalsWithin(limitMs) {
      finalsBy = Math.min(finalsBy, performance.now() + limitMs)
    },
    look({ isAttached, isHeldUp, takesAudio, readerIsFull }) {
      const now = performance.now()
      if (isAttached) attachedAt = now
      // Nobody is silent who is not listened to.
      if (!isAttached || isHeldUp) heardAt = now
      if (!isAttached || !readerIsFull) readerMovedAt = now
      if (now - attachedAt >= limits.resumeMs && !isAttached) return 'client_lost'
      if (now >= finalsBy) return 'finalize_timeout'
      if (now - readerMovedAt >= limits.readerStallMs) return 'slow_consumer'
      if (!takesAudio) return null
      if (now - startedAt >= limits.sessionMsMax) return 'max_session'
      if (now - heardAt >= limits.idleMs) return 'idle_timeout'
      return null
    },
    sinceMs: () => performance.now() - startedAt,
  }
}
