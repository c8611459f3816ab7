import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { hashApiKey, isApiKey } from './api-keys.ts'
import { refuseDisabled } from './disabled.ts'
import type { GroupRights, Membership } from './groups.ts'
import type { StoredKey } from './key-store.ts'
import { createKeyUsage } from './key-usage.ts'
import type { Principal } from './principal.ts'
import { createSingleFlight, remember } from './remember.ts'
import type { AuthStore } from './store.ts'

/** API key → principal, mostly from memory. */
export type KeyPrincipals = {
  authenticate(key: string): Promise<Principal>
  /** Forgets a key, the keys of a user, or with nothing given all. */
  forget(which?: { keyId: string } | { userId: string }): void
  close(): Promise<void>
}

export type KeyPrincipalsOptions = {
  store: Pick<AuthStore, 'findKey' | 'markUsed'>
  groups: Pick<GroupRights, 'of'>
  pepper: string | undefined
  /** How long a found key is trusted without asking the database. */
  cacheMs: number
  now: () => Date
  log: Pick<Log, 'warn'>
}

/** Keys found, and hashes found to be no keys, each about 1 KB. */
const entriesMax = 10_000
const unknownKeyMs = 5_000
/** While the database is away, a key that was found before goes on working for so long. */
const outageTrustMs = 300_000

/** `confirmedAt` is when the database last said so. */
type Found = {
  key: StoredKey
  bearer: Omit<Principal, 'groups' | 'permissions'>
  membership: Membership
  confirmedAt: number
}

export function createKeyPrincipals(options: KeyPrincipalsOptions): KeyPrincipals {
  const { store, groups, cacheMs } = options
  const found = new Map<string, Found>()
  const unknownUntil = new Map<string, number>()
  const once = createSingleFlight<Found>()
  const usage = createKeyUsage(options)
  /** Rises whenever something is forgotten: an answer that was under way must not be kept. */
  let forgotten = 0

  async function lookUp(hash: Buffer, id: string): Promise<Found> {
    const before = forgotten
    const key = await store.findKey(hash)
    if (key === undefined) {
      const value = performance.now() + unknownKeyMs
      remember(unknownUntil, { key: id, value, entriesMax })
      throw unknownKey()
    }
    const { keyId, userId, subject, name, membership } = key
    const value: Found = {
      key,
      bearer: { userId, subject, name, credential: { kind: 'api-key', keyId } },
      membership,
      confirmedAt: performance.now(),
    }
    if (before === forgotten) remember(found, { key: id, value, entriesMax })
    return value
  }

  async function find(hash: Buffer): Promise<Found> {
    const id = hash.toString('base64')
    if ((unknownUntil.get(id) ?? 0) > performance.now()) throw unknownKey()
    const known = found.get(id)
    if (known !== undefined && ageOf(known) < cacheMs) return known
    try {
      // Nobody joins a question that was asked before something was forgotten.
      return await once(`${forgotten} ${id}`, () => lookUp(hash, id))
    } catch (error) {
      const isAway = error instanceof AppError && error.kind === 'service_unavailable'
      const last = isAway ? found.get(id) : undefined
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
      if (stored.disabledAt !== null) throw refuseDisabled('invalid_api_key')
      usage.note(stored.keyId)
      return { ...bearer, ...groups.of(membership) }
    },
    forget(which) {
      forgotten += 1
      for (const [id, { key }] of found) {
        const isMeant =
          which === undefined ||
          ('keyId' in which ? key.keyId === which.keyId : key.userId === which.userId)
        if (isMeant) found.delete(id)
      }
    },
    close: usage.close,
  }
}

function ageOf({ confirmedAt }: Found): number {
  return performance.now() - confirmedAt
}

function unknownKey(): AppError {
  return new AppError('invalid_api_key', 'This API key is not valid.')
}
