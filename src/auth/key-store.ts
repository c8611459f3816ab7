import { and, desc, eq, gt, isNull, lt, or, sql } from 'drizzle-orm'
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core'
import type { Membership } from '#auth/groups.ts'
import type { KeyCredential } from '#auth/principal.ts'
import type { Database, Transaction } from '#db/client.ts'
import type { QueryRunner } from '#db/query-runner.ts'
import { apiKey, appUser, groupMember } from '#db/schema/auth.ts'
import { asRecord, parseJson } from '#lib/json.ts'
import type { PageRequest } from '#lib/page.ts'
import { sortScopes } from './scopes.ts'
import { addUser } from './user-store.ts'

/** What a key is restricted to; null: not at all. */
export type KeyRights = Pick<KeyCredential, 'models' | 'scopes' | 'limits'> &
  Pick<typeof apiKey.$inferSelect, 'allowedIps'>

export type StoredKey = KeyRights & {
  keyId: string
  userId: string
  subject: string
  name: string | null
  disabledAt: Date | null
  membership: Membership
  expiresAt: Date | null
  revokedAt: Date | null
  /** Until when the secret works if a rotation replaced it; null for the current secret. */
  replacedUntil: Date | null
}

export type KeyRecord = KeyRights &
  Pick<
    typeof apiKey.$inferSelect,
    | 'id'
    | 'userId'
    | 'name'
    | 'masked'
    | 'createdAt'
    | 'expiresAt'
    | 'lastUsedAt'
    | 'rotatedAt'
    | 'previousExpiresAt'
  >

/** The owner of a key. A service account must exist; a user may not be recorded yet. */
export type KeyOwner = {
  readonly userId: string
  readonly subject: string
  readonly kind: 'user' | 'service'
}

export type NewKey = Omit<typeof apiKey.$inferInsert, keyof KeyRights> &
  Partial<KeyRights> & { owner: KeyOwner }

/** A key that is not revoked, of this user; without `userId` of any user. */
export type KeySelector = { readonly keyId: string; readonly userId: string | undefined }

/** The fields of a key that can be changed. */
export type KeyChange = Partial<KeyRights & Pick<KeyRecord, 'name' | 'expiresAt'>>

/** A new secret of a key, whose expiry stays unless it is given. */
export type NewSecret = {
  readonly hash: Uint8Array
  readonly masked: string
  readonly rotatedAt: Date
  /** Until when the present secret works. */
  readonly previousExpiresAt: Date
  readonly expiresAt?: Date
}

export type AddKeyResult = 'added' | 'too-many' | 'no-owner'

/** Writes the audit entry, in the same transaction. */
type RecordAudit = (transaction: Transaction) => Promise<void>
/** The same, with the key before the change. */
type RecordKeyAudit = (transaction: Transaction, before: KeyRecord) => Promise<void>
type Handle = Database['drizzle']

const keyRights = {
  models: apiKey.models,
  scopes: apiKey.scopes,
  allowedIps: apiKey.allowedIps,
  limits: apiKey.limits,
}
const keyRecord = {
  id: apiKey.id,
  userId: apiKey.userId,
  name: apiKey.name,
  masked: apiKey.masked,
  createdAt: apiKey.createdAt,
  expiresAt: apiKey.expiresAt,
  lastUsedAt: apiKey.lastUsedAt,
  rotatedAt: apiKey.rotatedAt,
  previousExpiresAt: apiKey.previousExpiresAt,
  ...keyRights,
}

export function createKeyTable(drizzle: Handle, query: QueryRunner) {
  const findKey = prepareFindKey(drizzle)
  return {
    findKey: (hash: Uint8Array): Promise<StoredKey | undefined> => query(() => findKey(hash)),

    /** Adds a key, unless its owner has `liveKeysMax` valid ones or does not exist. */
    addKey(key: NewKey, liveKeysMax: number, record: RecordAudit): Promise<AddKeyResult> {
      return query(() => addKey(drizzle, { key, liveKeysMax, record }))
    },

    /** Newest first, with expired and without revoked keys; without `userId` those of every user. */
    listKeys(userId: string | undefined, page: PageRequest): Promise<KeyRecord[]> {
      const isListed = and(
        userId === undefined ? undefined : eq(apiKey.userId, userId),
        isNull(apiKey.revokedAt),
        page.after === undefined ? undefined : lt(apiKey.id, page.after),
      )
      return query(async () => {
        const rows = await drizzle
          .select(keyRecord)
          .from(apiKey)
          .where(isListed)
          .orderBy(desc(apiKey.id))
          .limit(page.limit)
        return rows.map(readKey)
      })
    },

    /** Changes a key; undefined if there is no such key. `record` is called with the key before it. */
    changeKey(
      selector: KeySelector,
      change: KeyChange,
      record: RecordKeyAudit,
    ): Promise<KeyRecord | undefined> {
      return query(() => updateKey(drizzle, selector, columnsOf(change), record))
    },

    /** Replaces the secret of a key; undefined if there is no such key. */
    rotateKey(
      selector: KeySelector,
      { hash, ...secret }: NewSecret,
      record: RecordKeyAudit,
    ): Promise<KeyRecord | undefined> {
      const set = { ...secret, hash, previousHash: sql`${apiKey.hash}` }
      return query(() => updateKey(drizzle, selector, set, record))
    },

    /** False if there is no such key. */
    async revokeKey(
      selector: KeySelector,
      revokedAt: Date,
      record: RecordKeyAudit,
    ): Promise<boolean> {
      const revoked = await query(() => updateKey(drizzle, selector, { revokedAt }, record))
      return revoked !== undefined
    },
  }
}

/** Prepared, because every invalid key causes a lookup: a tenth of the time of an unprepared query. */
function prepareFindKey(drizzle: Handle): (hash: Uint8Array) => Promise<StoredKey | undefined> {
  const hash = sql.placeholder('hash')
  const found = drizzle
    .select({
      ...storedKey,
      replacedUntil:
        sql`case when ${apiKey.hash} = ${hash} then null else ${apiKey.previousExpiresAt} end`.mapWith(
          apiKey.previousExpiresAt,
        ),
    })
    .from(apiKey)
    .innerJoin(appUser, eq(appUser.id, apiKey.userId))
    .leftJoin(groupMember, eq(groupMember.userId, apiKey.userId))
    .where(or(eq(apiKey.hash, hash), eq(apiKey.previousHash, hash)))
    .prepare('find_key')
  return async (hash) => {
    const rows = await found.execute({ hash })
    const [first] = rows
    if (first === undefined) return undefined
    const { group: _, source: __, ...key } = first
    return { ...readKey(key), membership: membershipOf(rows) }
  }
}

/** What is known of the user of a credential, one row for each group. */
export const holder = {
  userId: appUser.id,
  subject: appUser.subject,
  name: appUser.name,
  disabledAt: appUser.disabledAt,
  group: groupMember.groupName,
  source: groupMember.source,
}
/** The same of a key. */
export const storedKey = {
  ...holder,
  keyId: apiKey.id,
  expiresAt: apiKey.expiresAt,
  revokedAt: apiKey.revokedAt,
  ...keyRights,
}

/** A row with its stored rights as typed values. A scope of a later version grants nothing here. */
export function readKey<Row extends Pick<typeof apiKey.$inferSelect, keyof KeyRights>>({
  scopes,
  limits,
  ...row
}: Row) {
  return {
    ...row,
    scopes: scopes && sortScopes(scopes),
    limits: limits === null ? null : asRecord(parseJson(limits)),
  }
}

/** The columns of rights and other fields of a key. */
function columnsOf({ models, scopes, allowedIps, limits, ...fields }: KeyChange) {
  return {
    ...fields,
    ...(models === undefined ? {} : { models: models && [...models] }),
    ...(scopes === undefined ? {} : { scopes: scopes && [...scopes] }),
    ...(allowedIps === undefined ? {} : { allowedIps: allowedIps && [...allowedIps] }),
    ...(limits === undefined ? {} : { limits: limits && JSON.stringify(limits) }),
  }
}

/** Locks a live key, records the change and makes it; undefined if there is no such key. */
async function updateKey(
  drizzle: Handle,
  { keyId, userId }: KeySelector,
  columns: PgUpdateSetSource<typeof apiKey>,
  record: RecordKeyAudit,
): Promise<KeyRecord | undefined> {
  const isSelected = and(
    eq(apiKey.id, keyId),
    userId === undefined ? undefined : eq(apiKey.userId, userId),
    isNull(apiKey.revokedAt),
  )
  return drizzle.transaction(async (transaction) => {
    const [before] = await transaction
      .select(keyRecord)
      .from(apiKey)
      .where(isSelected)
      .for('update')
    if (before === undefined) return undefined
    await record(transaction, readKey(before))
    const isChanged = Object.keys(columns).length > 0
    if (!isChanged) return readKey(before)
    const [after] = await transaction
      .update(apiKey)
      .set(columns)
      .where(eq(apiKey.id, keyId))
      .returning(keyRecord)
    return after && readKey(after)
  })
}

type MemberRow = { readonly group: string | null; readonly source: string | null }

/** The groups of a user from rows joined with `group_member`. */
export function membershipOf(rows: readonly MemberRow[]): Membership {
  const named = (source: 'idp' | 'manual') =>
    rows.flatMap((row) => (row.source === source && row.group !== null ? [row.group] : [])).sort()
  return { idpGroups: named('idp'), manual: named('manual') }
}

async function addKey(
  drizzle: Handle,
  { key, liveKeysMax, record }: { key: NewKey; liveKeysMax: number; record: RecordAudit },
): Promise<AddKeyResult> {
  const { owner, models = null, scopes = null, allowedIps = null, limits = null, ...row } = key
  return drizzle.transaction(async (transaction) => {
    // The row of the owner is the lock of the count.
    if (!(await lockOwner(transaction, owner))) return 'no-owner'
    const isLive = and(
      eq(apiKey.userId, owner.userId),
      isNull(apiKey.revokedAt),
      or(isNull(apiKey.expiresAt), gt(apiKey.expiresAt, key.createdAt)),
    )
    if ((await transaction.$count(apiKey, isLive)) >= liveKeysMax) return 'too-many'
    await transaction
      .insert(apiKey)
      .values({ ...row, ...columnsOf({ models, scopes, allowedIps, limits }) })
    await record(transaction)
    return 'added'
  })
}

async function lockOwner(transaction: Transaction, owner: KeyOwner): Promise<boolean> {
  const { userId, subject, kind } = owner
  // Not recorded yet if the database was unreachable at the login.
  if (kind === 'user') await addUser(transaction, { id: userId, subject })
  const found = await transaction
    .select({ id: appUser.id })
    .from(appUser)
    .where(and(eq(appUser.id, userId), eq(appUser.kind, kind)))
    .for('update')
  return found.length > 0
}
