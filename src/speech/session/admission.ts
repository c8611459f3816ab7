import type { Config } from '#config/schema.ts'
import type { Connection } from './connection.ts'
import { noCapacity } from './faults.ts'
import type { AudioBudget } from './intake.ts'
import type { SpeechSession } from './session.ts'
import type { SessionError } from './session-error.ts'

/** Who may have another session. */
export type Admission = {
  /**
   * At the door, where it is not known yet whether a session is to be resumed, and at first not even
   * by whom; throws.
   */
  admit(userId: string | null): void
  /** Why no session can be added for this user; null where one can. */
  refusal(userId: string): SessionError | null
}

export function createAdmission(place: {
  readonly settings: Pick<Config['speech'], 'sessionsMax' | 'sessionsPerUserMax'>
  readonly budget: Pick<AudioBudget, 'isTight'>
  readonly connections: ReadonlySet<Connection>
  /** Those that wait for their client count. */
  readonly live: ReadonlyMap<string, SpeechSession>
}): Admission {
  const { budget, connections, live } = place
  const { sessionsMax, sessionsPerUserMax } = place.settings

  const sessionsOf = (userId: string) =>
    [...live.values()].filter((session) => session.start.userId === userId)
  const handshakesOf = (userId: string) =>
    [...connections].filter((connection) => connection.waitingUser() === userId).length

  function refusal(userId: string): SessionError | null {
    if (live.size >= sessionsMax) return noCapacity('sessions')
    if (sessionsOf(userId).length >= sessionsPerUserMax) return noCapacity('sessions_of_user')
    return budget.isTight() ? noCapacity('audio') : null
  }

  return {
    refusal,
    admit(userId) {
      // Sessions have one each, and as many may be about to begin or to resume one.
      if (connections.size > sessionsMax * 2) throw noCapacity('sessions')
      if (userId === null) return
      if (handshakesOf(userId) >= sessionsPerUserMax) throw noCapacity('sessions_of_user')
      const refused = refusal(userId)
      if (refused !== null && sessionsOf(userId).length === 0) throw refused
    },
  }
}
