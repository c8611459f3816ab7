import { and, desc, eq, gt, inArray, isNull, lt, or, sql } from 'drizzle-orm'
import { type Ask, createAsk } from '#db/ask.ts'
import type { Database } from '#db/client.ts'
import { apiKey, appGroup, appUser, groupMember } from '#db/schema/auth.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import type { Permission } from './permissions.ts'

/** The tables of this feature. What a request waits for fails with `service_unavailable`, soon. */
export type AuthStore = ReturnType<typeof createAuthStore>

export type AuthDatabase = Pick<Database, 'drizzle' | 'listen' | 'notify'>

/** What has changed: a key, the groups of a user, or what groups may do. */
export type Change = { what: 'key' | 'user' | 'groups'; id: string }

export type StoredKey = {
  keyId: string
  userId: string
  subject: string
  groups: readonly string[]
  expiresAt: Date | null
  revokedAt: Date | null
}

export type KeyRecord = Pick<
  typeof apiKey.$inferSelect,
  'id' | 'name' | 'masked' | 'createdAt' | 'expiresAt' | 'lastUsedAt'
>

/** A person as a token describes them. */
type Sighting = {
  userId: string
  subject: string
  groups: readonly string[]
  issuedAtS: number
}

type NewKey = typeof apiKey.$inferInsert & { subject: string }

/** One statement marks at most so many keys as used. */
const touchedKeysPerStatement = 1_000
/** The time of the last use is exact to this. */
export const lastUseGrainMs = 60_000

const keyRecord = {
  id: apiKey.id,
  name: apiKey.name,
  masked: apiKey.masked,
  createdAt: apiKey.createdAt,
  expiresAt: apiKey.expiresAt,
  lastUsedAt: apiKey.lastUsedAt,
}

/** The messages between processes. */
const channel = 'auth'
const announceTimeoutMs = 2_000

export function createAuthStore(database: AuthDatabase) {
  const { drizzle } = database
  const ask = createAsk()
  return { ...changeFeed(database), ...groupTables(drizzle, ask), ...keyTable(drizzle, ask) }
}

type Handle = Database['drizzle']

function changeFeed(database: AuthDatabase) {
  return {
    /** Hears of every change in any process; `onGap` says that some may have been missed. */
    async followChanges(listener: {
      onChange: (change: Change) => void
      onGap: () => void
    }): Promise<void> {
      await database.listen(channel, {
        onGap: listener.onGap,
        onMessage(message) {
          const [what, id = ''] = message.split(':')
          if (what === 'key' || what === 'user' || what === 'groups') {
            listener.onChange({ what, id })
          }
        },
      })
    },

    async announce({ what, id }: Change): Promise<void> {
      await withTimeLimit(database.notify(channel, `${what}:${id}`), announceTimeoutMs, () => {
        return new Error(`no answer within ${announceTimeoutMs} ms`)
      })
    },
  }
}

function groupTables(drizzle: Handle, ask: Ask) {
  return {
    /** Shipped groups are added where they are missing; configured ones are written over. */
    async seedGroups(
      shipped: Readonly<Record<string, readonly Permission[]>>,
      configured: Readonly<Record<string, readonly Permission[]>>,
    ): Promise<void> {
      const rows = (groups: typeof shipped) =>
        Object.entries(groups).map(([name, permissions]) => ({
          name,
          permissions: [...permissions],
        }))
      await drizzle.insert(appGroup).values(rows(shipped)).onConflictDoNothing()
      if (Object.keys(configured).length === 0) return
      await drizzle
        .insert(appGroup)
        .values(rows(configured))
        .onConflictDoUpdate({
          target: appGroup.name,
          set: { permissions: sql`excluded.permissions` },
        })
    },

    loadGroups() {
      return drizzle.select().from(appGroup)
    },

    /** Notes a user and their groups; an older token than the last one changes nothing. */
    recordSighting(sighting: Sighting): Promise<{ isChanged: boolean; manualGroups: string[] }> {
      return ask(() => recordSighting(drizzle, sighting))
    },
  }
}

function keyTable(drizzle: Handle, ask: Ask) {
  return {
    findKey(hash: Uint8Array): Promise<StoredKey | undefined> {
      return ask(() => findKey(drizzle, hash))
    },

    /** Adds a key unless the user has `liveKeysMax` that work; says whether it did. */
    addKey(key: NewKey, liveKeysMax: number): Promise<boolean> {
      return ask(() => addKey(drizzle, key, liveKeysMax))
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
    revokeKey(userId: string, keyId: string, revokedAt: Date): Promise<boolean> {
      const isLive = and(eq(apiKey.id, keyId), eq(apiKey.userId, userId), isNull(apiKey.revokedAt))
      return ask(async () => {
        const revoked = await drizzle
          .update(apiKey)
          .set({ revokedAt })
          .where(isLive)
          .returning({ id: apiKey.id })
        return revoked.length > 0
      })
    },

    /** For the background: waits as long as it takes. */
    async markUsed(keyIds: readonly string[], usedAt: Date): Promise<void> {
      const before = new Date(usedAt.getTime() - lastUseGrainMs)
      // In one order everywhere, so that two replicas never wait for each other.
      const ordered = [...keyIds].sort()
      for (let start = 0; start < ordered.length; start += touchedKeysPerStatement) {
        const ids = ordered.slice(start, start + touchedKeysPerStatement)
        const isDue = or(isNull(apiKey.lastUsedAt), lt(apiKey.lastUsedAt, before))
        await drizzle
          .update(apiKey)
          .set({ lastUsedAt: usedAt })
          .where(and(inArray(apiKey.id, ids), isDue))
      }
    },
  }
}

async function recordSighting(drizzle: Handle, sighting: Sighting) {
  const { userId, groups, issuedAtS } = sighting
  const known = await drizzle
    .select({
      seenAtS: appUser.groupsSeenAtS,
      group: groupMember.groupName,
      source: groupMember.source,
    })
    .from(appUser)
    .leftJoin(groupMember, eq(groupMember.userId, appUser.id))
    .where(eq(appUser.id, userId))
  const named = (source: 'idp' | 'manual') =>
    known.flatMap((row) => (row.source === source && row.group !== null ? [row.group] : []))
  const manualGroups = named('manual')
  const seenAtS = known[0]?.seenAtS
  const isSame = sameNames(named('idp'), groups)
  if (seenAtS !== undefined && (issuedAtS < seenAtS || (isSame && issuedAtS === seenAtS))) {
    return { isChanged: false, manualGroups }
  }
  const isTaken = await replaceGroups(drizzle, sighting)
  return { isChanged: isTaken && seenAtS !== undefined && !isSame, manualGroups }
}

/** The row of the user is the lock: of two tokens at once, the newer one has the last word. */
async function replaceGroups(drizzle: Handle, sighting: Sighting): Promise<boolean> {
  const { userId, subject, groups, issuedAtS } = sighting
  return drizzle.transaction(async (transaction) => {
    const taken = await transaction
      .insert(appUser)
      .values({ id: userId, subject, groupsSeenAtS: issuedAtS })
      .onConflictDoUpdate({
        target: appUser.id,
        set: { groupsSeenAtS: issuedAtS },
        setWhere: sql`${appUser.groupsSeenAtS} <= ${issuedAtS}`,
      })
      .returning({ id: appUser.id })
    if (taken.length === 0) return false
    await transaction
      .delete(groupMember)
      .where(and(eq(groupMember.userId, userId), eq(groupMember.source, 'idp')))
    if (groups.length > 0) {
      await transaction
        .insert(groupMember)
        .values(groups.map((groupName) => ({ userId, groupName, source: 'idp' as const })))
    }
    return true
  })
}

async function findKey(drizzle: Handle, hash: Uint8Array): Promise<StoredKey | undefined> {
  const rows = await drizzle
    .select({
      keyId: apiKey.id,
      userId: apiKey.userId,
      subject: appUser.subject,
      expiresAt: apiKey.expiresAt,
      revokedAt: apiKey.revokedAt,
      group: groupMember.groupName,
    })
    .from(apiKey)
    .innerJoin(appUser, eq(appUser.id, apiKey.userId))
    .leftJoin(groupMember, eq(groupMember.userId, apiKey.userId))
    .where(eq(apiKey.hash, hash))
  const [first] = rows
  if (first === undefined) return undefined
  const { group: _, ...key } = first
  const groups = rows.flatMap((row) => (row.group === null ? [] : [row.group]))
  return { ...key, groups: [...new Set(groups)].sort() }
}

async function addKey(drizzle: Handle, key: NewKey, liveKeysMax: number): Promise<boolean> {
  const { subject, ...row } = key
  return drizzle.transaction(async (transaction) => {
    // The user may not be there yet (the database was away), and its row is the lock of the count.
    await transaction
      .insert(appUser)
      .values({ id: key.userId, subject })
      .onConflictDoUpdate({ target: appUser.id, set: { subject } })
    const isLive = and(
      eq(apiKey.userId, key.userId),
      isNull(apiKey.revokedAt),
      or(isNull(apiKey.expiresAt), gt(apiKey.expiresAt, key.createdAt)),
    )
    if ((await transaction.$count(apiKey, isLive)) >= liveKeysMax) return false
    await transaction.insert(apiKey).values(row)
    return true
  })
}

function sameNames(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && new Set([...left, ...right]).size === left.length
}
