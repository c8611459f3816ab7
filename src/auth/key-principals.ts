import { AppError } from '#lib/errors.ts'
import { createSingleFlight, setBounded } from '#lib/single-flight.ts'
import type { Log } from '#telemetry/log.ts'
import { userDisabled } from './errors.ts'
import type { GroupRights, Membership } from './groups.ts'
import { hashApiKey, isApiKey } from './key-format.ts'
import type { StoredKey } from './key-store.ts'
import { createKeyUsage } from './key-usage.ts'
import type { Principal } from './principal.ts'
import type { AuthStore } from './store.ts'

/** Authenticates API keys, with a cache. */
export type KeyPrincipals = {
  authenticate(key: string): Promise<Principal>
  /** Drops a key, the keys of a user, or all keys from the cache. */
  invalidate(which?: { keyId: string } | { userId: string }): void
  close(): Promise<void>
}

export type KeyPrincipalsOptions = {
  store: Pick<AuthStore, 'findKey' | 'markUsed'>
  groups: Pick<GroupRights, 'of'>
  pepper: string | undefined
  /** How long a key is served from the cache. */
  cacheMs: number
  now: () => Date
  log: Pick<Log, 'warn'>
}

/** Known keys and unknown hashes, about 1 KB each. */
const entriesMax = 10_000
const unknownKeyMs = 5_000
/** How long a cached key works while the database is unreachable. */
const outageTrustMs = 300_000

/** `confirmedAt`: when it was read from the database. */
type CachedKey = {
  key: StoredKey
  bearer: Omit<Principal, 'groups' | 'permissions'>
  membership: Membership
  confirmedAt: number
}

export function createKeyPrincipals(options: KeyPrincipalsOptions): KeyPrincipals {
  const { store, groups, cacheMs } = options
  const found = new Map<string, CachedKey>()
  const unknownUntil = new Map<string, number>()
  const once = createSingleFlight<CachedKey>()
  const usage = createKeyUsage(options)
  /** Rises with each invalidation: a lookup that started before must not be cached. */
  let generation = 0

  async function lookUp(hash: Buffer, id: string): Promise<CachedKey> {
    const before = generation
    const key = await store.findKey(hash)
    if (key === undefined) {
      const value = performance.now() + unknownKeyMs
      setBounded(unknownUntil, id, value, entriesMax)
      throw unknownKey()
    }
    const { keyId, userId, subject, name, membership } = key
    const value: CachedKey = {
      key,
      bearer: { userId, subject, name, credential: { kind: 'api-key', keyId } },
      membership,
      confirmedAt: performance.now(),
    }
    if (before === generation) setBounded(found, id, value, entriesMax)
    return value
  }

  async function find(hash: Buffer): Promise<CachedKey> {
    const id = hash.toString('base64')
    if ((unknownUntil.get(id) ?? 0) > performance.now()) throw unknownKey()
    const known = found.get(id)
    if (known !== undefined && ageOf(known) < cacheMs) return known
    try {
      return await once(`${generation} ${id}`, () => lookUp(hash, id))
    } catch (error) {
      const isUnreachable = error instanceof AppError && error.kind === 'service_unavailable'
      const last = isUnreachable ? found.get(id) : undefined
      if (last !== undefined && ageOf(last) < outageTrustMs) return last
      throw error
    }
  }

  return {
    async authenticate(key) {
      if (!isApiKey(key)) throw unknownKey()
      const { key: stored, bearer, membership } = await find(hashApiKey(key, options.pepper))
      if (stored.revokedAt !== null) {
        throw new AppError('invalid_api_key', 'This API key was revoked.')
      }
      if (stored.expiresAt !== null && stored.expiresAt <= options.now()) {
        throw new AppError('invalid_api_key', 'This API key has expired.')
      }
      if (stored.disabledAt !== null) throw userDisabled('invalid_api_key')
      usage.record(stored.keyId)
      return { ...bearer, ...groups.of(membership) }
    },
    invalidate(which) {
      generation += 1
      for (const [id, { key }] of found) {
        const matches =
          which === undefined ||
          ('keyId' in which ? key.keyId === which.keyId : key.userId === which.userId)
        if (matches) found.delete(id)
      }
    },
    close: usage.close,
  }
}

function ageOf({ confirmedAt }: CachedKey): number {
  return performance.now() - confirmedAt
}

function unknownKey(): AppError {
  return new AppError('invalid_api_key', 'This API key is not valid.')
}
