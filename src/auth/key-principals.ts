import { AppError } from '#lib/errors.ts'
import { createLoadingCache } from '#lib/loading-cache.ts'
import { setBounded } from '#lib/single-flight.ts'
import type { Log } from '#telemetry/log.ts'
import { credentialsCachedMax } from './credentials.ts'
import type { GroupRights, Rights } from './groups.ts'
import { hashApiKey, isApiKey } from './key-format.ts'
import type { StoredKey } from './key-store.ts'
import { lastUseGrainMs } from './key-use-store.ts'
import { basePermission } from './permissions.ts'
import { type Bearer, type Principal, principalOf, userDisabled } from './principal.ts'
import type { Scope } from './scopes.ts'
import type { AuthStore } from './store.ts'

export type KeyPrincipals = ReturnType<typeof createKeyPrincipals>

type KeyPrincipalsOptions = {
  store: Pick<AuthStore, 'findKey' | 'markUsed'>
  groups: Pick<GroupRights, 'of'>
  pepper: string | undefined
  /** How long a key is served from the cache. */
  cacheMs: number
  now: () => Date
  log: Pick<Log, 'warn'>
}

const unknownKeyMs = 5_000
/** How long a cached key works while the database is unreachable. */
const outageTrustMs = 300_000

type CachedKey = {
  key: StoredKey
  bearer: Bearer
  /** When it was read from the database. */
  confirmedAt: number
}

/** Authenticates API keys, with a cache. */
export function createKeyPrincipals(options: KeyPrincipalsOptions) {
  const { store, groups, cacheMs } = options
  const cache = createLoadingCache<CachedKey>({ entriesMax: credentialsCachedMax })
  /** By hash, to limit the lookups of invalid keys. */
  const unknownUntil = new Map<string, number>()
  const usage = createKeyUsage(options)

  async function lookUp(hash: Buffer, id: string): Promise<CachedKey> {
    const key = await store.findKey(hash)
    if (key === undefined) {
      setBounded(unknownUntil, id, performance.now() + unknownKeyMs, credentialsCachedMax)
      throw unknownKey()
    }
    return { key, bearer: bearerOf(key), confirmedAt: performance.now() }
  }

  async function find(hash: Buffer): Promise<CachedKey> {
    const id = hash.toString('base64')
    if ((unknownUntil.get(id) ?? 0) > performance.now()) throw unknownKey()
    const known = cache.get(id)
    if (known !== undefined && ageOf(known) < cacheMs) return known
    try {
      return await cache.load(id, () => lookUp(hash, id))
    } catch (error) {
      const isUnreachable = error instanceof AppError && error.kind === 'service_unavailable'
      const last = isUnreachable ? cache.get(id) : undefined
      if (last !== undefined && ageOf(last) < outageTrustMs) return last
      throw error
    }
  }

  return {
    async authenticate(text: string): Promise<Principal> {
      if (!isApiKey(text)) throw unknownKey()
      const { key, bearer } = await find(hashApiKey(text, options.pepper))
      requireValid(key, options.now())
      usage.record(key.keyId)
      return principalOf(bearer, rightsOf(key.scopes, groups.of(key.membership)))
    },
    /** Drops a key, the keys of a user, or all keys from the cache. */
    invalidate(which: { keyId?: string; userId?: string } = {}): void {
      const { keyId, userId } = which
      cache.invalidate(
        ({ key }) =>
          (keyId === undefined || key.keyId === keyId) &&
          (userId === undefined || key.userId === userId),
      )
    },
    close: usage.flush,
  }
}

export function bearerOf(key: StoredKey): Bearer {
  const { keyId, userId, subject, name, models, scopes, limits } = key
  const credential = { kind: 'api-key', keyId, models, scopes, limits } as const
  return { userId, subject, name, credential }
}

/** Throws `invalid_api_key`. */
export function requireValid(key: StoredKey, now: Date): void {
  const { revokedAt, expiresAt, replacedUntil, disabledAt } = key
  if (revokedAt !== null) throw new AppError('invalid_api_key', 'This API key was revoked.')
  if (expiresAt !== null && expiresAt <= now) {
    throw new AppError('invalid_api_key', 'This API key has expired.')
  }
  if (replacedUntil !== null && replacedUntil <= now) {
    throw new AppError('invalid_api_key', 'This API key was replaced by its rotation.')
  }
  if (disabledAt !== null) throw userDisabled('invalid_api_key')
}

/** By the rights of the owner, since principals are compared by identity. */
const withoutAdmin = new WeakMap<Rights, Rights>()

/** Without the scope `admin` no permission of the owner goes beyond the base permission. */
export function rightsOf(scopes: readonly Scope[] | null, rights: Rights): Rights {
  if (scopes === null || scopes.includes('admin')) return rights
  const known = withoutAdmin.get(rights)
  if (known !== undefined) return known
  const permissions = rights.permissions.intersection(new Set([basePermission]))
  const restricted = { groups: rights.groups, permissions }
  withoutAdmin.set(rights, restricted)
  return restricted
}

function ageOf({ confirmedAt }: CachedKey): number {
  return performance.now() - confirmedAt
}

function unknownKey(): AppError {
  return new AppError('invalid_api_key', 'This API key is not valid.')
}

/** The interval of writes. */
const flushMs = 1_000
/** Further keys are not recorded until the next flush. */
const usedKeysMax = 10_000

/** Records the last use of keys, at most once a minute each, in the background. */
function createKeyUsage({ store, now, log }: KeyPrincipalsOptions) {
  const recordedAt = new Map<string, number>()
  const due = new Set<string>()
  let timer: Timer | undefined

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const keyIds = [...due]
    due.clear()
    if (keyIds.length === 0) return
    try {
      await store.markUsed(keyIds, now())
    } catch (error) {
      log.warn('API key usage write failed', { error })
    }
  }
  return {
    record(keyId: string): void {
      const usedAt = performance.now()
      const last = recordedAt.get(keyId)
      if ((last !== undefined && usedAt - last < lastUseGrainMs) || due.size >= usedKeysMax) return
      if (recordedAt.size >= usedKeysMax) recordedAt.clear()
      recordedAt.set(keyId, usedAt)
      due.add(keyId)
      timer ??= setTimeout(flush, flushMs)
    },
    /** Writes pending records. */
    flush,
  }
}
