import { AppError } from '#lib/errors.ts'
import { createNetworks } from '#lib/networks.ts'
import type { Log } from '#telemetry/log.ts'
import type { GroupRights, Rights } from './groups.ts'
import { hashApiKey, isApiKey } from './key-format.ts'
import type { StoredKey } from './key-store.ts'
import { basePermission } from './permissions.ts'
import { type Bearer, type Principal, principalOf, userDisabled } from './principal.ts'
import type { Scope } from './scopes.ts'
import { createSecretCache } from './secret-cache.ts'
import type { AuthStore } from './store.ts'
import { createUseRecorder } from './use-recorder.ts'

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

/** Authenticates API keys, with a cache. */
export function createKeyPrincipals(options: KeyPrincipalsOptions) {
  const { store, groups, cacheMs, log, now } = options
  const keys = createSecretCache({
    cacheMs,
    unknown: unknownKey,
    async load(hash) {
      const key = await store.findKey(hash)
      return key && { key, bearer: bearerOf(key) }
    },
  })
  const usage = createUseRecorder({ markUsed: store.markUsed, now, log, what: 'API key' })

  /** Throws `invalid_api_key` for a key that is not valid any more. */
  function use({ key, bearer }: { key: StoredKey; bearer: Bearer }): Principal {
    requireValid(key, options.now())
    usage.record(key.keyId)
    return principalOf(bearer, rightsOf(key.scopes, groups.of(key.membership)))
  }

  return {
    /** Of a key that was found before. */
    known(text: string): Principal | null {
      const found = isApiKey(text) ? keys.cached(hashApiKey(text, options.pepper)) : undefined
      return found === undefined ? null : use(found)
    },
    async authenticate(text: string): Promise<Principal> {
      if (!isApiKey(text)) throw unknownKey()
      return use(await keys.find(hashApiKey(text, options.pepper)))
    },
    /** Drops a key, the keys of a user, or all keys from the cache. */
    invalidate(which: { keyId?: string; userId?: string } = {}): void {
      const { keyId, userId } = which
      keys.invalidate(
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
  const allowedIps = key.allowedIps && createNetworks(key.allowedIps)
  const credential = { kind: 'api-key', keyId, models, scopes, allowedIps, limits } as const
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

function unknownKey(): AppError {
  return new AppError('invalid_api_key', 'This API key is not valid.')
}
