import { and, desc, eq, gt, inArray, isNull, lt, or, sql } from 'drizzle-orm'
import type { Membership } from '#auth/groups.ts'
import type { Database, Transaction } from '#db/client.ts'
import type { QueryRunner } from '#db/query-runner.ts'
import { apiKey, appUser, groupMember } from '#db/schema/auth.ts'
import type { PageRequest } from '#lib/page.ts'

export type StoredKey = {
  keyId: string
  userId: string
  subject: string
  name: string | null
  disabledAt: Date | null
  membership: Membership
  expiresAt: Date | null
  revokedAt: Date | null
}

export type KeyRecord = Pick<
  typeof apiKey.$inferSelect,
  'id' | 'name' | 'masked' | 'createdAt' | 'expiresAt' | 'lastUsedAt'
>

/** The owner of a key. A service account must exist; a user may not be recorded yet. */
export type KeyOwner = {
  readonly userId: string
  readonly subject: string
  readonly kind: 'user' | 'service'
}

export type NewKey = typeof apiKey.$inferInsert & { owner: KeyOwner }

export type AddKeyResult = 'added' | 'too-many' | 'no-owner'

/** Writes the audit entry, in the same transaction. */
type RecordAudit = (transaction: Transaction) => Promise<void>
type Handle = Database['drizzle']

/** Keys per statement. */
const touchedKeysPerStatement = 1_000
/** The precision of the last use of a key, */
export const lastUseGrainMs = 60_000
/** and of the last request of a user. */
export const lastSeenGrainMs = 3_600_000

const keyRecord = {
  id: apiKey.id,
  name: apiKey.name,
  masked: apiKey.masked,
  createdAt: apiKey.createdAt,
  expiresAt: apiKey.expiresAt,
  lastUsedAt: apiKey.lastUsedAt,
}

export function createKeyTable(drizzle: Handle, query: QueryRunner) {
  const findKey = prepareFindKey(drizzle)
  return {
    findKey: (hash: Uint8Array): Promise<StoredKey | undefined> => query(() => findKey(hash)),

    /** Adds a key, unless its owner has `liveKeysMax` valid ones or does not exist. */
    addKey(key: NewKey, liveKeysMax: number, record: RecordAudit): Promise<AddKeyResult> {
      return query(() => addKey(drizzle, { key, liveKeysMax, record }))
    },

    /** Newest first, with expired and without revoked keys. */
    listKeys(userId: string, page: PageRequest): Promise<KeyRecord[]> {
      const isListed = and(
        eq(apiKey.userId, userId),
        isNull(apiKey.revokedAt),
        page.after === undefined ? undefined : lt(apiKey.id, page.after),
      )
      return query(async () =>
        drizzle
          .select(keyRecord)
          .from(apiKey)
          .where(isListed)
          .orderBy(desc(apiKey.id))
          .limit(page.limit),
      )
    },

    /** False if this user has no such key. */
    revokeKey(
      { userId, keyId, revokedAt }: { userId: string; keyId: string; revokedAt: Date },
      record: (transaction: Transaction, name: string) => Promise<void>,
    ): Promise<boolean> {
      const isLive = and(eq(apiKey.id, keyId), eq(apiKey.userId, userId), isNull(apiKey.revokedAt))
      return query(() =>
        drizzle.transaction(async (transaction) => {
          const [revoked] = await transaction
            .update(apiKey)
            .set({ revokedAt })
            .where(isLive)
            .returning({ name: apiKey.name })
          if (revoked === undefined) return false
          await record(transaction, revoked.name)
          return true
        }),
      )
    },

    /** Runs in the background, without a deadline. */
    async markUsed(keyIds: readonly string[], usedAt: Date): Promise<void> {
      // The same order on every replica prevents deadlocks.
      const ordered = [...keyIds].sort()
      for (let start = 0; start < ordered.length; start += touchedKeysPerStatement) {
        await markUsed(drizzle, ordered.slice(start, start + touchedKeysPerStatement), usedAt)
      }
    },
  }
}

/** Prepared, because every invalid key causes a lookup: a tenth of the time of an unprepared query. */
function prepareFindKey(drizzle: Handle): (hash: Uint8Array) => Promise<StoredKey | undefined> {
  const found = drizzle
    .select({
      keyId: apiKey.id,
      userId: apiKey.userId,
      subject: appUser.subject,
      name: appUser.name,
      disabledAt: appUser.disabledAt,
      expiresAt: apiKey.expiresAt,
      revokedAt: apiKey.revokedAt,
      group: groupMember.groupName,
      source: groupMember.source,
    })
    .from(apiKey)
    .innerJoin(appUser, eq(appUser.id, apiKey.userId))
    .leftJoin(groupMember, eq(groupMember.userId, apiKey.userId))
    .where(eq(apiKey.hash, sql.placeholder('hash')))
    .prepare('find_key')
  return async (hash) => {
    const rows = await found.execute({ hash })
    const [first] = rows
    if (first === undefined) return undefined
    const { group: _, source: __, ...key } = first
    return { ...key, membership: membershipOf(rows) }
  }
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
  const { owner, ...row } = key
  return drizzle.transaction(async (transaction) => {
    // The row of the owner is the lock of the count.
    if (!(await lockOwner(transaction, owner))) return 'no-owner'
    const isLive = and(
      eq(apiKey.userId, owner.userId),
      isNull(apiKey.revokedAt),
      or(isNull(apiKey.expiresAt), gt(apiKey.expiresAt, key.createdAt)),
    )
    if ((await transaction.$count(apiKey, isLive)) >= liveKeysMax) return 'too-many'
    await transaction.insert(apiKey).values(row)
    await record(transaction)
    return 'added'
  })
}

async function lockOwner(transaction: Transaction, owner: KeyOwner): Promise<boolean> {
  const { userId, subject, kind } = owner
  if (kind === 'user') {
    // Not recorded yet if the database was unreachable at the login.
    await transaction
      .insert(appUser)
      .values({ id: userId, subject })
      .onConflictDoUpdate({ target: appUser.id, set: { subject } })
    return true
  }
  const found = await transaction
    .select({ id: appUser.id })
    .from(appUser)
    .where(and(eq(appUser.id, userId), eq(appUser.kind, kind)))
    .for('update')
  return found.length > 0
}

async function markUsed(drizzle: Handle, ids: readonly string[], usedAt: Date): Promise<void> {
  const keysFrom = new Date(usedAt.getTime() - lastUseGrainMs)
  const usersFrom = new Date(usedAt.getTime() - lastSeenGrainMs)
  await drizzle
    .update(apiKey)
    .set({ lastUsedAt: usedAt })
    .where(
      and(
        inArray(apiKey.id, [...ids]),
        or(isNull(apiKey.lastUsedAt), lt(apiKey.lastUsedAt, keysFrom)),
      ),
    )
  const isDue = or(isNull(appUser.lastSeenAt), lt(appUser.lastSeenAt, usersFrom))
  const owners = drizzle
    .select({ id: apiKey.userId })
    .from(apiKey)
    .where(inArray(apiKey.id, [...ids]))
  // Another replica that holds the row writes the same value.
  const due = drizzle
    .select({ id: appUser.id })
    .from(appUser)
    .where(and(inArray(appUser.id, owners), isDue))
    .for('update', { skipLocked: true })
  await drizzle.update(appUser).set({ lastSeenAt: usedAt }).where(sql`${appUser.id} in (${due})`)
}
