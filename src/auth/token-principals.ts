import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import type { GroupPermissions } from './groups.ts'
import { type Principal, userIdOf } from './principal.ts'
import { createSingleFlight, remember } from './remember.ts'
import type { AuthStore } from './store.ts'
import type { TokenClaims, TokenVerifier } from './tokens.ts'

/** JWT → principal, mostly from memory. */
export type TokenPrincipals = {
  authenticate(token: string): Promise<Principal>
}

export type TokenPrincipalsOptions = {
  verifier: Pick<TokenVerifier, 'verify' | 'version'>
  store: Pick<AuthStore, 'recordSighting'>
  groups: Pick<GroupPermissions, 'of'>
  /** Called when a token brought other groups than those that were known of the user. */
  onGroupsChanged: (userId: string) => Promise<void>
  now: () => Date
  log: Pick<Log, 'warn'>
}

const entriesMax = 10_000
/** A verified token is trusted for so long at most, and never beyond its expiry. */
const cacheMs = 60_000
/** A user who could not be noted is tried again this soon. */
const unrecordedCacheMs = 5_000

type Verified = {
  principal: Omit<Principal, 'permissions'>
  expiresAtMs: number
  cachedUntil: number
  /** Of the verifier, when the token was verified. */
  version: number
}

export function createTokenPrincipals(options: TokenPrincipalsOptions): TokenPrincipals {
  const { verifier, groups, now } = options
  const cache = new Map<string, Verified>()
  const once = createSingleFlight<Verified>()

  async function verify(token: string, id: string): Promise<Verified> {
    const version = verifier.version()
    const claims = await verifier.verify(token)
    const { manualGroups, isRecorded } = await recordSighting(claims, options)
    const value: Verified = {
      principal: {
        userId: userIdOf(claims.subject),
        subject: claims.subject,
        groups: [...new Set([...claims.groups, ...manualGroups])],
        credential: { kind: 'jwt' },
      },
      expiresAtMs: claims.expiresAtS * 1000,
      cachedUntil: performance.now() + (isRecorded ? cacheMs : unrecordedCacheMs),
      version,
    }
    remember(cache, { key: id, value, entriesMax })
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
      const { principal } = isTrusted ? known : await once(id, () => verify(token, id))
      return { ...principal, permissions: groups.of(principal.groups) }
    },
  }
}

/** A token is enough to come in: what goes wrong here is logged and not the caller's concern. */
async function recordSighting(
  claims: TokenClaims,
  { store, onGroupsChanged, log }: TokenPrincipalsOptions,
): Promise<{ manualGroups: readonly string[]; isRecorded: boolean }> {
  const { subject, groups, issuedAtS } = claims
  const userId = userIdOf(subject)
  try {
    const seen = await store.recordSighting({ userId, subject, groups, issuedAtS })
    if (seen.isChanged) await onGroupsChanged(userId)
    return { manualGroups: seen.manualGroups, isRecorded: true }
  } catch (error) {
    const isAway = error instanceof AppError && error.kind === 'service_unavailable'
    log.warn('The user of a token could not be noted.', isAway ? { userId } : { userId, error })
    return { manualGroups: [], isRecorded: false }
  }
}
