import { AppError } from '#lib/errors.ts'
import { createApiKey, hashApiKey, maskApiKey } from './api-keys.ts'
import type { Principal } from './principal.ts'
import type { AuthStore, KeyRecord } from './store.ts'

/** The API keys of the users. */
export type KeyRing = {
  /** The only moment at which the key itself is known. */
  create(
    owner: Pick<Principal, 'userId' | 'subject'>,
    wish: { name: string; expiresAt: Date | null },
  ): Promise<KeyRecord & { key: string }>
  /** Newest first, from after the key with the id `after`. */
  list(
    userId: string,
    page: { limit: number; after: string | undefined },
  ): Promise<{ records: readonly KeyRecord[]; hasMore: boolean }>
  /** Ends a key on every replica; says whether this user had it. */
  revoke(userId: string, keyId: string): Promise<boolean>
}

/** Enough for every device and program of a person; a leaked token cannot fill the table. */
const liveKeysMax = 100

export function createKeyRing(options: {
  store: Pick<AuthStore, 'addKey' | 'listKeys' | 'revokeKey'>
  now: () => Date
  pepper: string | undefined
  onRevoked: (keyId: string) => Promise<void>
}): KeyRing {
  const { store, now, pepper } = options
  return {
    async create({ userId, subject }, { name, expiresAt }) {
      const key = createApiKey()
      const record = {
        id: Bun.randomUUIDv7(),
        name,
        masked: maskApiKey(key),
        createdAt: now(),
        expiresAt,
      }
      const row = { ...record, userId, subject, hash: hashApiKey(key, pepper) }
      if (!(await store.addKey(row, liveKeysMax))) {
        throw new AppError(
          'unprocessable',
          `You have ${liveKeysMax} API keys, which is the limit; delete one first.`,
          { code: 'too_many_api_keys' },
        )
      }
      return { ...record, lastUsedAt: null, key }
    },
    async list(userId, { limit, after }) {
      const records = await store.listKeys(userId, { limit: limit + 1, after })
      return { records: records.slice(0, limit), hasMore: records.length > limit }
    },
    async revoke(userId, keyId) {
      const isRevoked = await store.revokeKey(userId, keyId, now())
      if (isRevoked) await options.onRevoked(keyId)
      return isRevoked
    },
  }
}
