import { and, eq, lt, type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner, type QueryRunner } from '#db/query-runner.ts'
import { appGroup, appUser, groupMember, knownPermission } from '#db/schema/auth.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import { createKeyTable, lastSeenGrainMs } from './key-store.ts'
import { groupsPermission, type Permission, shippedAdmins } from './permissions.ts'

/** The tables of this feature. What a request waits for fails with `service_unavailable`, soon. */
export type AuthStore = ReturnType<typeof createAuthStore>

export type AuthDatabase = Pick<Database, 'drizzle' | 'listen' | 'notify' | 'notifyOnCommit'>

/**
 * What has changed: a key; the words of a user's tokens; anything else about a user; what groups are
 * and may do; or so much that all is to be asked anew.
 */
export type Change = { readonly what: ChangeKind; readonly id: string }
type ChangeKind = (typeof changeKinds)[number]

const changeKinds = ['key', 'words', 'user', 'groups', 'all'] as const

/** The database inside a transaction, as far as a message needs it. */
export type Announcing = Parameters<Database['notifyOnCommit']>[0]

/** A person as a token describes them. */
type Sighting = {
  readonly userId: string
  readonly subject: string
  readonly name: string | null
  /** The words of the token. */
  readonly groups: readonly string[]
  readonly issuedAtS: number
  readonly seenAt: Date
}

/** What is known of somebody beside what their token says. */
export type Seen = {
  /** Whether the token brought other words than those that were known. */
  readonly isChanged: boolean
  readonly manual: readonly string[]
  readonly name: string | null
  readonly isDisabled: boolean
}

/** The messages between processes. */
const channel = 'auth'
const announceTimeoutMs = 2_000

export function createAuthStore(database: AuthDatabase) {
  const { drizzle } = database
  const ask = createQueryRunner()
  return { ...changeFeed(database), ...groupTables(drizzle, ask), ...createKeyTable(drizzle, ask) }
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
          const [kind, id = ''] = message.split(':')
          const what = changeKinds.find((known) => known === kind)
          if (what !== undefined) listener.onChange({ what, id })
        },
      })
    },

    async announce(change: Change): Promise<void> {
      await withTimeLimit(database.notify(channel, messageOf(change)), announceTimeoutMs, () => {
        return new Error(`no answer within ${announceTimeoutMs} ms`)
      })
    },

    announceOnCommit: (transaction: Announcing, change: Change): Promise<void> =>
      database.notifyOnCommit(transaction, channel, messageOf(change)),
  }
}

function messageOf({ what, id }: Change): string {
  return `${what}:${id}`
}

function groupTables(drizzle: Handle, ask: QueryRunner) {
  return {
    /**
     * Adds missing shipped groups and overwrites configured ones. The shipped administrators get
     * every permission that is new since the last start, and the permission to manage groups where
     * no group has it, unless the configuration sets their permissions.
     */
    seedGroups: (shipped: GroupList, configured: GroupList): Promise<void> =>
      drizzle.transaction(async (transaction) => {
        await transaction.insert(appGroup).values(rowsOf(shipped)).onConflictDoNothing()
        if (Object.keys(configured).length > 0) {
          await transaction
            .insert(appGroup)
            .values(rowsOf(configured))
            .onConflictDoUpdate({
              target: appGroup.name,
              set: { permissions: sql`excluded.permissions`, updatedAt: sql`now()` },
              setWhere: sql`${appGroup.permissions} is distinct from excluded.permissions`,
            })
        }
        const names = shipped[shippedAdmins] ?? []
        const added =
          names.length === 0
            ? []
            : await transaction
                .insert(knownPermission)
                .values(names.map((name) => ({ name })))
                .onConflictDoNothing()
                .returning()
        if (Object.hasOwn(configured, shippedAdmins)) return
        for (const { name } of added)
          await grantToAdmins(transaction, name, isNotHeldByAdmins(name))
        await grantToAdmins(transaction, groupsPermission, isNotHeldByAnyGroup(groupsPermission))
      }),

    loadGroups() {
      return drizzle
        .select({
          name: appGroup.name,
          permissions: appGroup.permissions,
          idpClaim: appGroup.idpClaim,
        })
        .from(appGroup)
    },

    /** Notes a user and their groups; an older token than the last one changes no group. */
    recordSighting(sighting: Sighting): Promise<Seen> {
      return ask(() => recordSighting(drizzle, sighting))
    },
  }
}

async function grantToAdmins(
  handle: Pick<Handle, 'update'>,
  permission: string,
  condition: SQL,
): Promise<void> {
  await handle
    .update(appGroup)
    .set({ permissions: sql`array_append(${appGroup.permissions}, ${permission})` })
    .where(and(eq(appGroup.name, shippedAdmins), condition))
}

function isNotHeldByAdmins(permission: string): SQL {
  return sql`not ${permission} = any (${appGroup.permissions})`
}

function isNotHeldByAnyGroup(permission: string): SQL {
  return sql`not exists (
    select 1 from app_group other where ${permission} = any (other.permissions))`
}

type GroupList = Readonly<Record<string, readonly Permission[]>>

function rowsOf(groups: GroupList) {
  return Object.entries(groups).map(([name, permissions]) => ({
    name,
    permissions: [...permissions],
  }))
}

async function recordSighting(drizzle: Handle, sighting: Sighting): Promise<Seen> {
  const { userId, groups, issuedAtS, seenAt } = sighting
  const known = await drizzle
    .select({
      seenAtS: appUser.groupsSeenAtS,
      name: appUser.name,
      disabledAt: appUser.disabledAt,
      lastSeenAt: appUser.lastSeenAt,
      group: groupMember.groupName,
      source: groupMember.source,
    })
    .from(appUser)
    .leftJoin(groupMember, eq(groupMember.userId, appUser.id))
    .where(eq(appUser.id, userId))
  const named = (source: 'idp' | 'manual') =>
    known.flatMap((row) => (row.source === source && row.group !== null ? [row.group] : []))
  const [user] = known
  const isDisabled = user !== undefined && user.disabledAt !== null
  const seen: Seen = {
    isChanged: false,
    manual: named('manual').sort(),
    name: sighting.name ?? user?.name ?? null,
    isDisabled,
  }
  // Nobody was let in, so nobody was seen.
  if (isDisabled) return seen
  const isSame = sameNames(named('idp'), groups)
  const isNewer =
    user === undefined || issuedAtS > user.seenAtS || (issuedAtS === user.seenAtS && !isSame)
  if (!isNewer) {
    await touchUser(drizzle, { userId, seenAt, lastSeenAt: user.lastSeenAt })
    return seen
  }
  const isTaken = await replaceGroups(drizzle, sighting)
  return { ...seen, isChanged: isTaken && user !== undefined && !isSame }
}

/** A user who comes often costs one write an hour. */
async function touchUser(
  drizzle: Handle,
  { userId, seenAt, lastSeenAt }: { userId: string; seenAt: Date; lastSeenAt: Date | null },
): Promise<void> {
  const before = new Date(seenAt.getTime() - lastSeenGrainMs)
  if (lastSeenAt !== null && lastSeenAt >= before) return
  const isOlder = lastSeenAt === null ? undefined : lt(appUser.lastSeenAt, before)
  await drizzle
    .update(appUser)
    .set({ lastSeenAt: seenAt })
    .where(and(eq(appUser.id, userId), isOlder))
}

/** The row of the user is the lock: of two tokens at once, the newer one has the last word. */
async function replaceGroups(drizzle: Handle, sighting: Sighting): Promise<boolean> {
  const { userId, subject, name, groups, issuedAtS, seenAt } = sighting
  return drizzle.transaction(async (transaction) => {
    const taken = await transaction
      .insert(appUser)
      .values({ id: userId, subject, name, groupsSeenAtS: issuedAtS, lastSeenAt: seenAt })
      .onConflictDoUpdate({
        target: appUser.id,
        set: {
          groupsSeenAtS: issuedAtS,
          lastSeenAt: seenAt,
          name: sql`coalesce(excluded.name, ${appUser.name})`,
        },
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

function sameNames(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && new Set([...left, ...right]).size === left.length
}
