import type { Actor } from '#audit/audit.ts'
import type { Audit } from '#audit/store.ts'
import { AppError } from '#lib/errors.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import { createApiKey, hashApiKey, maskApiKey } from './key-format.ts'
import type { KeyOwner, KeyRecord } from './key-store.ts'
import type { AuthStore } from './store.ts'

/** Enough for the devices and programs of a person; a leaked token cannot fill the table. */
const liveKeysMax = 100

/** The API keys of users and service accounts. */
export function createApiKeys(options: {
  store: Pick<AuthStore, 'addKey' | 'listKeys' | 'revokeKey'>
  audit: Pick<Audit, 'record'>
  now: () => Date
  pepper: string | undefined
  onRevoked: (keyId: string) => Promise<void>
}) {
  const { store, audit, now, pepper } = options
  return {
    /**
     * Returns the key itself, which is not stored. Throws `unprocessable` with the code
     * `too_many_api_keys`, and `not_found` for a deleted service account.
     */
    async create(
      actor: Actor,
      owner: KeyOwner,
      { name, expiresAt }: { name: string; expiresAt: Date | null },
    ): Promise<KeyRecord & { key: string }> {
      const key = createApiKey()
      const id = Bun.randomUUIDv7()
      const record = { id, name, masked: maskApiKey(key), createdAt: now(), expiresAt }
      const { userId } = owner
      const row = { ...record, userId, owner, hash: hashApiKey(key, pepper) }
      const result = await store.addKey(row, liveKeysMax, (transaction) =>
        audit.record(
          {
            actor,
            action: 'api_key.create',
            resource: { type: 'api_key', id },
            changes: {
              before: null,
              after: { name, user_id: userId, expires_at: expiresAt?.toISOString() ?? null },
            },
          },
          transaction,
        ),
      )
      if (result === 'too-many') throw tooManyKeys(owner)
      if (result === 'no-owner')
        throw new AppError('not_found', 'This service account was deleted.')
      return { ...record, lastUsedAt: null, key }
    },
    /** Newest first, after the key `after`. */
    async list(userId: string, { limit, after }: PageRequest): Promise<Page<KeyRecord>> {
      return pageOf(await store.listKeys(userId, { limit: limit + 1, after }), limit)
    },
    /** Revokes a key on every replica; false if this user has no such key. */
    async revoke(actor: Actor, userId: string, keyId: string): Promise<boolean> {
      const revoked = { userId, keyId, revokedAt: now() }
      const isRevoked = await store.revokeKey(revoked, (transaction, name) =>
        audit.record(
          {
            actor,
            action: 'api_key.revoke',
            resource: { type: 'api_key', id: keyId },
            changes: { before: { name, user_id: userId }, after: null },
          },
          transaction,
        ),
      )
      if (isRevoked) await options.onRevoked(keyId)
      return isRevoked
    },
  }
}

function tooManyKeys({ kind }: KeyOwner): AppError {
  const whose = kind === 'user' ? 'You have' : 'This service account has'
  return new AppError(
    'unprocessable',
    `${whose} ${liveKeysMax} API keys, which is the limit; delete one first.`,
    { code: 'too_many_api_keys' },
  )
}
