import { and, eq, lte, type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner, type QueryRunner } from '#db/query-runner.ts'
import { appGroup, appUser, groupMember, knownPermission } from '#db/schema/auth.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import { createHolderTable } from './holder-store.ts'
import { createKeyTable, membershipOf } from './key-store.ts'
import { createKeyUseTable, lastSeenGrainMs } from './key-use-store.ts'
import { groupsPermission, type Permission, shippedAdmins } from './permissions.ts'
import { createSessionTable } from './session-store.ts'
import { addUser } from './user-store.ts'

/** Queries on the path of a request fail fast with `service_unavailable`. */
export type AuthStore = ReturnType<typeof createAuthStore>

export type AuthDatabase = Pick<Database, 'drizzle' | 'listen' | 'notify' | 'notifyOnCommit'>

/**
 * A change that invalidates caches: of a key; of the sessions of a user; of the claim values of a user;
 * of another field of a user; of groups; or of everything, after missed notifications.
 */
export type Change = { readonly what: ChangeKind; readonly id: string }
type ChangeKind = (typeof changeKinds)[number]

const changeKinds = ['key', 'session', 'idp_groups', 'user', 'groups', 'all'] as const

/** A transaction that can send notifications. */
type NotifyHandle = Parameters<Database['notifyOnCommit']>[0]

/** A user as a token describes them. */
type TokenUser = {
  readonly userId: string
  readonly subject: string
  readonly name: string | null
  /** The claim values of the token. */
  readonly groups: readonly string[]
  readonly issuedAtS: number
  readonly seenAt: Date
}

/** What the database knows of a user beyond the token. */
export type RecordedUser = {
  /** Whether the token lists other groups than the last one. */
  readonly isChanged: boolean
  readonly manual: readonly string[]
  readonly name: string | null
  readonly isDisabled: boolean
}

const channel = 'auth'
const notifyTimeoutMs = 2_000

export function createAuthStore(database: AuthDatabase) {
  const { drizzle } = database
  const query = createQueryRunner()
  return {
    ...changeFeed(database),
    ...groupTables(drizzle, query),
    ...createKeyTable(drizzle, query),
    ...createKeyUseTable(drizzle),
    ...createHolderTable(drizzle, query),
    ...createSessionTable(drizzle, query),
  }
}

type Handle = Database['drizzle']

function changeFeed(database: AuthDatabase) {
  return {
    /** Receives the changes of every process; `onGap`: some may have been missed. */
    async listen(listener: {
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

    async notify(change: Change): Promise<void> {
      await withTimeLimit(database.notify(channel, messageOf(change)), notifyTimeoutMs, () => {
        return new Error(`no response within ${notifyTimeoutMs} ms`)
      })
    },

    notifyOnCommit: (transaction: NotifyHandle, change: Change): Promise<void> =>
      database.notifyOnCommit(transaction, channel, messageOf(change)),
  }
}

async function overwriteGroups(handle: Pick<Handle, 'insert'>, groups: GroupList): Promise<void> {
  if (Object.keys(groups).length === 0) return
  await handle
    .insert(appGroup)
    .values(rowsOf(groups))
    .onConflictDoUpdate({
      target: appGroup.name,
      set: { permissions: sql`excluded.permissions`, updatedAt: sql`now()` },
      setWhere: sql`${appGroup.permissions} is distinct from excluded.permissions`,
    })
}

function messageOf({ what, id }: Change): string {
  return `${what}:${id}`
}

function groupTables(drizzle: Handle, query: QueryRunner) {
  return {
    /**
     * Adds missing shipped groups and overwrites configured ones. The shipped administrators get
     * every permission that is new since the last start, and the permission to manage groups where
     * no group has it, unless the configuration sets their permissions.
     */
    seedGroups: (shipped: GroupList, configured: GroupList): Promise<void> =>
      drizzle.transaction(async (transaction) => {
        await transaction.insert(appGroup).values(rowsOf(shipped)).onConflictDoNothing()
        await overwriteGroups(transaction, configured)
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

    /** Adds or overwrites groups whose permissions were changed in the configuration. */
    overwriteGroups: (configured: GroupList): Promise<void> =>
      query(() => overwriteGroups(drizzle, configured)),

    loadGroups() {
      return drizzle
        .select({
          name: appGroup.name,
          permissions: appGroup.permissions,
          idpClaim: appGroup.idpClaim,
        })
        .from(appGroup)
    },

    /** Records a user and their groups; a token older than the last one changes no group. */
    recordUser(user: TokenUser): Promise<RecordedUser> {
      return query(() => recordUser(drizzle, user))
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

async function recordUser(drizzle: Handle, tokenUser: TokenUser): Promise<RecordedUser> {
  const { userId, groups, issuedAtS, seenAt } = tokenUser
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
  const { idpGroups, manual } = membershipOf(known)
  const [user] = known
  const isDisabled = user !== undefined && user.disabledAt !== null
  const recorded: RecordedUser = {
    isChanged: false,
    manual,
    name: tokenUser.name ?? user?.name ?? null,
    isDisabled,
  }
  if (isDisabled) return recorded
  const isSame = sameNames(idpGroups, groups)
  const isNewer =
    user === undefined || issuedAtS > user.seenAtS || (issuedAtS === user.seenAtS && !isSame)
  if (!isNewer) {
    await touchUser(drizzle, { userId, seenAt, lastSeenAt: user.lastSeenAt })
    return recorded
  }
  const isTaken = await replaceGroups(drizzle, tokenUser)
  return { ...recorded, isChanged: isTaken && user !== undefined && !isSame }
}

/** At most one write per user and hour. */
async function touchUser(
  drizzle: Handle,
  { userId, seenAt, lastSeenAt }: { userId: string; seenAt: Date; lastSeenAt: Date | null },
): Promise<void> {
  const before = new Date(seenAt.getTime() - lastSeenGrainMs)
  if (lastSeenAt !== null && lastSeenAt >= before) return
  await drizzle.update(appUser).set({ lastSeenAt: seenAt }).where(eq(appUser.id, userId))
}

/** The row of the user is the lock: of two concurrent tokens the newer one wins. */
async function replaceGroups(drizzle: Handle, tokenUser: TokenUser): Promise<boolean> {
  const { userId, subject, name, groups, issuedAtS, seenAt } = tokenUser
  return drizzle.transaction(async (transaction) => {
    await addUser(transaction, { id: userId, subject, groupsSeenAtS: issuedAtS })
    const taken = await transaction
      .update(appUser)
      .set({
        groupsSeenAtS: issuedAtS,
        lastSeenAt: seenAt,
        name: sql`coalesce(${name}::text, ${appUser.name})`,
      })
      .where(and(eq(appUser.id, userId), lte(appUser.groupsSeenAtS, issuedAtS)))
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
