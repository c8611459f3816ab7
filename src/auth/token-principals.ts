import { AppError } from '#lib/errors.ts'
import { createLoadingCache } from '#lib/loading-cache.ts'
import { setBounded } from '#lib/single-flight.ts'
import type { Log } from '#telemetry/log.ts'
import { credentialsCachedMax } from './credentials.ts'
import type { GroupRights, Membership } from './groups.ts'
import { type Bearer, type Principal, principalOf, userDisabled, userIdOf } from './principal.ts'
import type { AuthStore, RecordedUser } from './store.ts'
import type { TokenClaims, TokenVerifier } from './tokens.ts'

type TokenPrincipalsOptions = {
  verifier: Pick<TokenVerifier, 'verify' | 'version'>
  store: Pick<AuthStore, 'recordUser'>
  groups: Pick<GroupRights, 'of'>
  /** Called when a token lists other groups than the last one of the user. */
  onIdpGroupsChanged: (userId: string) => Promise<void>
  now: () => Date
  log: Pick<Log, 'warn'>
}

/** The longest time in the cache, within the expiry of the token. */
const cacheMs = 60_000
/** The same for a user that could not be recorded. */
const unrecordedCacheMs = 5_000

type CachedToken = {
  bearer: Bearer
  membership: Membership
  isDisabled: boolean
  expiresAtMs: number
  cachedUntil: number
  /** The version of the verifier at the time. */
  version: number
}

/** The last known state of a user, about 300 bytes; used while the database is unreachable. */
type KnownUser = Pick<RecordedUser, 'manual' | 'name' | 'isDisabled'>

/** Authenticates JWTs, with a cache. */
export function createTokenPrincipals(options: TokenPrincipalsOptions) {
  const { verifier, groups, now } = options
  const cache = createLoadingCache<CachedToken>({ entriesMax: credentialsCachedMax })
  const lookUp = createUserLookUp(options)

  async function verify(token: string): Promise<CachedToken> {
    const version = verifier.version()
    const claims = await verifier.verify(token)
    const { subject } = claims
    const userId = userIdOf(subject)
    const { manual, name, isDisabled, isRecorded } = await lookUp(userId, claims)
    return {
      bearer: { userId, subject, name: claims.name ?? name, credential: { kind: 'jwt' } },
      membership: { idpGroups: claims.groups, manual },
      isDisabled,
      expiresAtMs: claims.expiresAtS * 1000,
      cachedUntil: performance.now() + (isRecorded ? cacheMs : unrecordedCacheMs),
      version,
    }
  }

  /** Of the whole token: with a shorter key one token could pass for another. */
  const idOf = (token: string) => Bun.SHA256.hash(token, 'base64')

  function findTrusted(id: string): CachedToken | undefined {
    const known = cache.get(id)
    const isTrusted =
      known !== undefined &&
      known.version === verifier.version() &&
      performance.now() < known.cachedUntil &&
      now().getTime() < known.expiresAtMs
    return isTrusted ? known : undefined
  }

  return {
    /** Of a valid token that was verified before. */
    known(token: string): Principal | null {
      const verified = findTrusted(idOf(token))
      if (verified === undefined || verified.isDisabled) return null
      return principalOf(verified.bearer, groups.of(verified.membership))
    },
    async authenticate(token: string): Promise<Principal> {
      const id = idOf(token)
      const verified = findTrusted(id) ?? (await cache.load(id, () => verify(token)))
      if (verified.isDisabled) throw userDisabled('invalid_token')
      return principalOf(verified.bearer, groups.of(verified.membership))
    },
    /** Drops the tokens of a user, or all tokens from the cache. */
    invalidate({ userId }: { userId?: string } = {}): void {
      cache.invalidate(({ bearer }) => userId === undefined || bearer.userId === userId)
    },
  }
}

/** A valid token is sufficient: failures to record its user are only logged. */
function createUserLookUp({ store, onIdpGroupsChanged, now, log }: TokenPrincipalsOptions) {
  const lastKnown = new Map<string, KnownUser>()
  return async (
    userId: string,
    claims: TokenClaims,
  ): Promise<KnownUser & { isRecorded: boolean }> => {
    const { subject, name, groups, issuedAtS } = claims
    try {
      const user = { userId, subject, name, groups, issuedAtS, seenAt: now() }
      const { isChanged, ...recorded } = await store.recordUser(user)
      setBounded(lastKnown, userId, recorded, credentialsCachedMax)
      if (isChanged) await onIdpGroupsChanged(userId)
      return { ...recorded, isRecorded: true }
    } catch (error) {
      const isUnreachable = error instanceof AppError && error.kind === 'service_unavailable'
      const fields = { user_id: userId, ...(isUnreachable ? {} : { error }) }
      log.warn('user recording failed', fields)
      const known = lastKnown.get(userId) ?? { manual: [], name: null, isDisabled: false }
      return { ...known, isRecorded: false }
    }
  }
}
