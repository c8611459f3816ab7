import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { refuseDisabled } from './disabled.ts'
import type { GroupRights, Membership } from './groups.ts'
import { type Principal, userIdOf } from './principal.ts'
import { createSingleFlight, remember } from './remember.ts'
import type { AuthStore, Seen } from './store.ts'
import type { TokenClaims, TokenVerifier } from './tokens.ts'

/** JWT → principal, mostly from memory. */
export type TokenPrincipals = {
  authenticate(token: string): Promise<Principal>
  /** Asks anew about a user, or with nothing given about everybody. */
  forget(which?: { userId: string }): void
}

export type TokenPrincipalsOptions = {
  verifier: Pick<TokenVerifier, 'verify' | 'version'>
  store: Pick<AuthStore, 'recordSighting'>
  groups: Pick<GroupRights, 'of'>
  /** Called when a token brought other words than those that were known of the user. */
  onWordsChanged: (userId: string) => Promise<void>
  now: () => Date
  log: Pick<Log, 'warn'>
}

const entriesMax = 10_000
/** A verified token is trusted for so long at most, and never beyond its expiry. */
const cacheMs = 60_000
/** A user who could not be noted is tried again this soon. */
const unrecordedCacheMs = 5_000

type Verified = {
  bearer: Omit<Principal, 'groups' | 'permissions'>
  membership: Membership
  isDisabled: boolean
  expiresAtMs: number
  cachedUntil: number
  /** Of the verifier, when the token was verified. */
  version: number
}

/** What the database last said of a user, about 300 bytes; it holds while the database is away. */
type Known = Pick<Seen, 'manual' | 'name' | 'isDisabled'>

export function createTokenPrincipals(options: TokenPrincipalsOptions): TokenPrincipals {
  const { verifier, groups, now } = options
  const cache = new Map<string, Verified>()
  const once = createSingleFlight<Verified>()
  const lookUp = createUserLookUp(options)
  /** Rises whenever something is forgotten: an answer that was under way must not be kept. */
  let forgotten = 0

  async function verify(token: string, id: string): Promise<Verified> {
    const before = forgotten
    const version = verifier.version()
    const claims = await verifier.verify(token)
    const { subject } = claims
    const userId = userIdOf(subject)
    const { manual, name, isDisabled, isRecorded } = await lookUp(userId, claims)
    const value: Verified = {
      bearer: { userId, subject, name: claims.name ?? name, credential: { kind: 'jwt' } },
      membership: { words: claims.groups, manual },
      isDisabled,
      expiresAtMs: claims.expiresAtS * 1000,
      cachedUntil: performance.now() + (isRecorded ? cacheMs : unrecordedCacheMs),
      version,
    }
    if (before === forgotten) remember(cache, { key: id, value, entriesMax })
    return value
  }

  return {
    async authenticate(token) {
      // The hash of the whole token: a shorter key would let one token pass for another.
      const id = new Bun.CryptoHasher('sha256').update(token).digest('base64')
      const known = cache.get(id)
      const isTrusted =
        known !== undefined &&
        known.version === verifier.version() &&
        performance.now() < known.cachedUntil &&
        now().getTime() < known.expiresAtMs
      // Nobody joins a question that was asked before something was forgotten.
      const verified = isTrusted ? known : await once(`${forgotten} ${id}`, () => verify(token, id))
      if (verified.isDisabled) throw refuseDisabled('invalid_token')
      return { ...verified.bearer, ...groups.of(verified.membership) }
    },
    forget(which) {
      forgotten += 1
      if (which === undefined) return cache.clear()
      for (const [id, { bearer }] of cache) {
        if (bearer.userId === which.userId) cache.delete(id)
      }
    },
  }
}

/** A token is enough to come in: what goes wrong here is logged and not the caller's concern. */
function createUserLookUp({ store, onWordsChanged, now, log }: TokenPrincipalsOptions) {
  const lastKnown = new Map<string, Known>()
  return async (userId: string, claims: TokenClaims): Promise<Known & { isRecorded: boolean }> => {
    const { subject, name, groups, issuedAtS } = claims
    try {
      const sighting = { userId, subject, name, groups, issuedAtS, seenAt: now() }
      const { isChanged, ...seen } = await store.recordSighting(sighting)
      remember(lastKnown, { key: userId, value: seen, entriesMax })
      if (isChanged) await onWordsChanged(userId)
      return { ...seen, isRecorded: true }
    } catch (error) {
      const isAway = error instanceof AppError && error.kind === 'service_unavailable'
      log.warn('The user of a token could not be noted.', isAway ? { userId } : { userId, error })
      const known = lastKnown.get(userId) ?? { manual: [], name: null, isDisabled: false }
      return { ...known, isRecorded: false }
    }
  }
}
