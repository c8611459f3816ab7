import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import type { GroupRights } from './groups.ts'
import { type Bearer, type Principal, principalOf, userDisabled } from './principal.ts'
import { createSecretCache } from './secret-cache.ts'
import { hashSecret, isSessionSecret } from './session-cookie.ts'
import type { StoredSession } from './session-store.ts'
import type { AuthStore } from './store.ts'
import { createUseRecorder } from './use-recorder.ts'

type SessionPrincipalsOptions = {
  store: Pick<AuthStore, 'findSession' | 'markSessionsUsed'>
  groups: Pick<GroupRights, 'of'>
  /** How long a session is served from the cache. */
  cacheMs: number
  /** A session without requests ends after this time. */
  idleMs: number
  now: () => Date
  log: Pick<Log, 'warn'>
}

/** Asks the identity provider whether a session goes on; throws if it has ended. */
export type RenewSession = (sessionId: string) => Promise<void>

type CachedSession = { session: StoredSession; bearer: Bearer; lastUsedMs: number }

/** Authenticates the cookies of browsers, with a cache. */
export function createSessionPrincipals(options: SessionPrincipalsOptions) {
  const { store, groups, cacheMs, idleMs, now, log } = options
  const sessions = createSecretCache<CachedSession>({
    cacheMs,
    unknown: sessionOver,
    async load(hash) {
      const session = await store.findSession(hash)
      return (
        session && { session, bearer: bearerOf(session), lastUsedMs: session.lastUsedAt.getTime() }
      )
    },
  })
  const usage = createUseRecorder({ markUsed: store.markSessionsUsed, now, log, what: 'session' })
  let renew: RenewSession = async () => {}

  const isInUse = ({ lastUsedMs, session }: CachedSession) =>
    now().getTime() - lastUsedMs < idleMs || session.method === 'code'
  const needsRenewal = ({ session: { renewAt } }: CachedSession) =>
    renewAt !== null && renewAt <= now()
  // Another replica may have seen a use, or have renewed it.
  const isFresh = (entry: CachedSession) => isInUse(entry) && !needsRenewal(entry)

  async function findRenewed(hash: Buffer): Promise<CachedSession> {
    const found = await sessions.find(hash, isFresh)
    requireLive(found)
    if (!needsRenewal(found)) return found
    await renew(found.session.sessionId)
    return sessions.find(hash, isFresh)
  }

  function requireLive(entry: CachedSession): void {
    const { expiresAt, disabledAt } = entry.session
    if (expiresAt <= now() || !isInUse(entry)) throw sessionOver()
    if (disabledAt !== null) throw userDisabled('invalid_session')
  }

  return {
    async authenticate(secret: string): Promise<Principal> {
      if (!isSessionSecret(secret)) throw sessionOver()
      const entry = await findRenewed(hashSecret(secret))
      requireLive(entry)
      entry.lastUsedMs = now().getTime()
      usage.record(entry.session.sessionId)
      return principalOf(entry.bearer, groups.of(entry.session.membership))
    },
    /** Drops the sessions of a user, or all sessions from the cache. */
    invalidate({ userId }: { userId?: string } = {}): void {
      sessions.invalidate(({ session }) => userId === undefined || session.userId === userId)
    },
    /** Sets what happens when the tokens behind a session have expired. */
    renewWith(how: RenewSession): void {
      renew = how
    },
    close: usage.flush,
  }
}

function bearerOf(session: StoredSession): Bearer {
  const { userId, subject, name, sessionId, method, createdAt, expiresAt } = session
  const browser = { id: sessionId, method, createdAt, expiresAt }
  return { userId, subject, name, credential: { kind: 'jwt', session: browser } }
}

function sessionOver(): AppError {
  return new AppError('invalid_session', 'The session has ended; log in again.')
}
