import type { Actor, AuditEntry } from '#audit/audit.ts'
import type { Audit } from '#audit/store.ts'
import type { Transaction } from '#db/client.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import { createApiKey, hashApiKey, maskApiKey } from './key-format.ts'
import type { KeyChange, KeyOwner, KeyRecord, KeyRights, KeySelector } from './key-store.ts'
import type { AuthStore } from './store.ts'

/** Enough for the devices and programs of a person; a leaked token cannot fill the table. */
const liveKeysMax = 100

/** A key as its creator describes it. */
export type NewApiKey = KeyRights & Pick<KeyRecord, 'name' | 'expiresAt'>

/** The only form of a key that contains its secret. */
export type KeyWithSecret = KeyRecord & { readonly key: string }

/** The API keys of users and service accounts. */
export function createApiKeys(options: {
  store: Pick<
    AuthStore,
    'addKey' | 'findKey' | 'listKeys' | 'changeKey' | 'rotateKey' | 'revokeKey'
  >
  audit: Pick<Audit, 'record'>
  now: () => Date
  pepper: string | undefined
  /** Called after each change of a key. */
  onChanged: (keyId: string) => Promise<void>
}) {
  const { store, audit, now, pepper, onChanged } = options

  const recordChange =
    (actor: Actor, verb: 'create' | 'update' | 'rotate' | 'revoke', id: string) =>
    (changes: AuditEntry['changes'], transaction: Transaction) => {
      const resource = { type: 'api_key', id }
      return audit.record({ actor, action: `api_key.${verb}`, resource, changes }, transaction)
    }

  return {
    /**
     * Returns the key itself, which is not stored. Throws `unprocessable` with the code
     * `too_many_api_keys`, and `not_found` for a deleted service account.
     */
    async create(actor: Actor, owner: KeyOwner, given: NewApiKey): Promise<KeyWithSecret> {
      const key = createApiKey()
      const id = Bun.randomUUIDv7()
      const { userId } = owner
      const record = { ...given, id, userId, masked: maskApiKey(key), createdAt: now() }
      const row = { ...record, owner, hash: hashApiKey(key, pepper) }
      const after = { user_id: userId, ...auditedFields(given) }
      const write = recordChange(actor, 'create', id)
      const result = await store.addKey(row, liveKeysMax, (transaction) =>
        write({ before: null, after }, transaction),
      )
      if (result === 'too-many') throw tooManyKeys(owner)
      if (result === 'no-owner')
        throw new AppError('not_found', 'This service account was deleted.')
      return { ...record, lastUsedAt: null, rotatedAt: null, previousExpiresAt: null, key }
    },

    /** Newest first, after the key `after`; without `userId` the keys of every user. */
    async list(
      userId: string | undefined,
      { limit, after }: PageRequest,
    ): Promise<Page<KeyRecord>> {
      return pageOf(await store.listKeys(userId, { limit: limit + 1, after }), limit)
    },

    /** Changes a key on every replica; undefined if there is no such key. */
    async change(
      actor: Actor,
      selector: KeySelector,
      change: KeyChange,
    ): Promise<KeyRecord | undefined> {
      const write = recordChange(actor, 'update', selector.keyId)
      const changed = await store.changeKey(selector, change, (transaction, known) => {
        const after = auditedFields(change)
        const before = pickFields(auditedFields(known), Object.keys(after))
        return write({ before, after }, transaction)
      })
      if (changed !== undefined) await onChanged(selector.keyId)
      return changed
    },

    /**
     * Gives a key a new secret; the present one works for `overlapS` more seconds. Undefined if there
     * is no such key. Without `expiresAt` it expires as before.
     */
    async rotate(
      actor: Actor,
      selector: KeySelector,
      { overlapS, expiresAt }: { overlapS: number; expiresAt?: Date },
    ): Promise<KeyWithSecret | undefined> {
      const key = createApiKey()
      const rotatedAt = now()
      const previousExpiresAt = new Date(rotatedAt.getTime() + overlapS * 1000)
      const masked = maskApiKey(key)
      const secret = {
        hash: hashApiKey(key, pepper),
        masked,
        rotatedAt,
        previousExpiresAt,
        ...(expiresAt === undefined ? {} : { expiresAt }),
      }
      const write = recordChange(actor, 'rotate', selector.keyId)
      const rotated = await store.rotateKey(selector, secret, (transaction, known) => {
        const before = { name: known.name, user_id: known.userId, masked: known.masked }
        const after = {
          masked,
          previous_expires_at: previousExpiresAt.toISOString(),
          ...(expiresAt === undefined ? {} : { expires_at: expiresAt.toISOString() }),
        }
        return write({ before, after }, transaction)
      })
      if (rotated === undefined) return undefined
      await onChanged(selector.keyId)
      return { ...rotated, key }
    },

    /** The owner of a secret, also of an expired or replaced one; undefined if there is no such key. */
    async ownerOf(key: string) {
      const found = await store.findKey(hashApiKey(key, pepper))
      if (found === undefined || found.revokedAt !== null) return undefined
      const { keyId, userId, expiresAt, replacedUntil } = found
      const isReplaced = replacedUntil !== null && replacedUntil <= now()
      return { keyId, userId, expiresAt, isReplaced }
    },

    /** Revokes a key on every replica; false if there is no such key. */
    async revoke(actor: Actor, selector: KeySelector): Promise<boolean> {
      const write = recordChange(actor, 'revoke', selector.keyId)
      const isRevoked = await store.revokeKey(selector, now(), (transaction, { name, userId }) =>
        write({ before: { name, user_id: userId }, after: null }, transaction),
      )
      if (isRevoked) await onChanged(selector.keyId)
      return isRevoked
    },
  }
}

/** The fields of a change as the audit log shows them. */
function auditedFields({
  name,
  expiresAt,
  models,
  scopes,
  allowedIps,
  limits,
}: KeyChange): JsonObject {
  const fields = {
    name,
    expires_at: expiresAt === undefined ? undefined : (expiresAt?.toISOString() ?? null),
    models,
    scopes,
    allowed_ips: allowedIps,
    limits,
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function pickFields(record: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(record).filter(([name]) => names.includes(name)))
}

function tooManyKeys({ kind }: KeyOwner): AppError {
  const whose = kind === 'user' ? 'You have' : 'This service account has'
  return new AppError(
    'unprocessable',
    `${whose} ${liveKeysMax} API keys, which is the limit; delete one first.`,
    { code: 'too_many_api_keys' },
  )
}
