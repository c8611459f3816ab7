import { and, desc, eq, gt, inArray, isNull, lt, or, sql } from 'drizzle-orm'
import type { Membership } from '#auth/groups.ts'
import type { Database } from '#db/client.ts'
import type { QueryRunner } from '#db/query-runner.ts'
import { apiKey, appUser, groupMember } from '#db/schema/auth.ts'

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

/** Whose key it is. A service account must be there; a user may come in before they are noted. */
export type KeyOwner = {
  readonly userId: string
  readonly subject: string
  readonly kind: 'user' | 'service'
}

export type NewKey = typeof apiKey.$inferInsert & { owner: KeyOwner }

export type Adding = 'added' | 'too-many' | 'no-owner'

/** Writes into the record, in the same transaction. */
type Recording = (transaction: Transaction) => Promise<void>
type Transaction = Parameters<Parameters<Database['drizzle']['transaction']>[0]>[0]
type Handle = Database['drizzle']

/** One statement marks at most so many keys as used. */
const touchedKeysPerStatement = 1_000
/** The time of the last use is exact to this, */
export const lastUseGrainMs = 60_000
/** and when its owner was last seen to this. */
export const lastSeenGrainMs = 3_600_000

const keyRecord = {
  id: apiKey.id,
  name: apiKey.name,
  masked: apiKey.masked,
  createdAt: apiKey.createdAt,
  expiresAt: apiKey.expiresAt,
  lastUsedAt: apiKey.lastUsedAt,
}

export function createKeyTable(drizzle: Handle, ask: QueryRunner) {
  const findKey = prepareFindKey(drizzle)
  return {
    findKey: (hash: Uint8Array): Promise<StoredKey | undefined> => ask(() => findKey(hash)),

    /** Adds a key, unless its owner has `liveKeysMax` that work or is not there. */
    addKey(key: NewKey, liveKeysMax: number, record: Recording): Promise<Adding> {
      return ask(() => addKey(drizzle, { key, liveKeysMax, record }))
    },

    /** Newest first; revoked keys are gone, expired ones are there. */
    listKeys(
      userId: string,
      page: { limit: number; after: string | undefined },
    ): Promise<KeyRecord[]> {
      const isListed = and(
        eq(apiKey.userId, userId),
        isNull(apiKey.revokedAt),
        page.after === undefined ? undefined : lt(apiKey.id, page.after),
      )
      return ask(async () =>
        drizzle
          .select(keyRecord)
          .from(apiKey)
          .where(isListed)
          .orderBy(desc(apiKey.id))
          .limit(page.limit),
      )
    },

    /** Says whether there was such a key of this user to revoke. */
    revokeKey(
      { userId, keyId, revokedAt }: { userId: string; keyId: string; revokedAt: Date },
      record: (transaction: Transaction, name: string) => Promise<void>,
    ): Promise<boolean> {
      const isLive = and(eq(apiKey.id, keyId), eq(apiKey.userId, userId), isNull(apiKey.revokedAt))
      return ask(() =>
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

    /** For the background: waits as long as it takes. */
    async markUsed(keyIds: readonly string[], usedAt: Date): Promise<void> {
      // In one order everywhere, so that two replicas never wait for each other.
      const ordered = [...keyIds].sort()
      for (let start = 0; start < ordered.length; start += touchedKeysPerStatement) {
        await markUsed(drizzle, ordered.slice(start, start + touchedKeysPerStatement), usedAt)
      }
    },
  }
}

/**
 * Whoever invents keys has each of them looked up, so this is the one question that the database
 * parses and plans once for each connection: it is then answered in a tenth of the time.
 */
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
    const named = (source: 'idp' | 'manual') =>
      rows.flatMap((row) => (row.source === source && row.group !== null ? [row.group] : []))
    return { ...key, membership: { words: named('idp').sort(), manual: named('manual').sort() } }
  }
}

async function addKey(
  drizzle: Handle,
  { key, liveKeysMax, record }: { key: NewKey; liveKeysMax: number; record: Recording },
): Promise<Adding> {
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
    // They may not be there yet: the database was away.
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
  // Another replica that writes the same row writes the same.
  const due = drizzle
    .select({ id: appUser.id })
    .from(appUser)
    .where(and(inArray(appUser.id, owners), isDue))
    .for('update', { skipLocked: true })
  await drizzle.update(appUser).set({ lastSeenAt: usedAt }).where(sql`${appUser.id} in (${due})`)
}
