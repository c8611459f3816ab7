import { and, eq, ne, sql } from 'drizzle-orm'
import type { Actor } from '#audit/audit.ts'
import { isPermission, type Permission, shippedGroups, sortPermissions } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import type { Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { appGroup, groupMember } from '#db/schema/auth.ts'
import { type IsExpected, requireExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import { conflict, type DirectoryDeps } from './change-store.ts'
import { hasMembers, removeGroupReferences } from './group-references-store.ts'

/** The fields of a group other than its name, which is its identity. */
export type GroupFields = {
  readonly description: string
  readonly permissions: readonly Permission[]
  /** The claim value that maps to it; null: its name. */
  readonly idpClaim: string | null
}

type StoredGroup = GroupFields & {
  readonly name: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type Group = StoredGroup & {
  /** The number of its members. */
  readonly members: number
  /** Defined in the configuration, which resets it at each start. */
  readonly isLocked: boolean
  /** Built in. */
  readonly isShipped: boolean
}

type Handle = Pick<Transaction, 'select' | 'execute'>

/** Every process holds all groups in memory. */
const groupsMax = 1_000
const tagChars = 16

export type Groups = ReturnType<typeof createGroups>

/** Unknown groups are `not_found`; other errors are `conflict` with specific codes. */
export function createGroups({
  database,
  makeChange,
  config,
  now,
}: DirectoryDeps & { config: Config }) {
  const { drizzle } = database
  const query = createQueryRunner()
  const isLocked = (name: string) => Object.hasOwn(config.groups, name)

  const complete = async (handle: Handle, group: StoredGroup): Promise<Group> => {
    const counts = await countMembers(handle, [group.name])
    return withOrigin(group, counts)
  }
  const withOrigin = (group: StoredGroup, counts: ReadonlyMap<string, number>): Group => ({
    ...group,
    members: counts.get(group.name) ?? 0,
    isLocked: isLocked(group.name),
    isShipped: Object.hasOwn(shippedGroups, group.name),
  })
  /** Throws `precondition_failed` if the current version is not the expected one. */
  const requireChangeable = async (
    transaction: Transaction,
    name: string,
    isExpected: IsExpected,
  ): Promise<StoredGroup> => {
    const group = await findGroup(transaction, name)
    if (isLocked(name)) throw conflict(groupErrors.locked)
    requireExpected(isExpected, tagOf(group), 'This group has changed since you read it.')
    return group
  }

  return {
    /** By name, after the group `after`. */
    list: ({ limit, after }: PageRequest): Promise<Page<Group>> =>
      query(async () => {
        // The order of pages must not depend on the collation of the database.
        const key = sql`${appGroup.name} collate "C"`
        const rows = await drizzle
          .select()
          .from(appGroup)
          .where(after === undefined ? undefined : sql`${key} > ${after}`)
          .orderBy(key)
          .limit(limit + 1)
        const { items, hasMore } = pageOf(rows, limit)
        const names = items.map(({ name }) => name)
        const counts = await countMembers(drizzle, names)
        return { items: items.map((row) => withOrigin(groupOf(row), counts)), hasMore }
      }),

    find: (name: string): Promise<Group> =>
      query(async () => complete(drizzle, await findGroup(drizzle, name))),

    create: (actor: Actor, name: string, fields: GroupFields): Promise<Group> =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        await requireNewName(transaction, name)
        await requireFreeClaim(transaction, name, fields.idpClaim)
        // References to the people whose tokens name this group stay theirs.
        const isSameGroup = fields.idpClaim === null && (await hasMembers(transaction, name))
        if (!isSameGroup) await removeGroupReferences(database, transaction, name)
        const time = now()
        const group = { name, ...fields, createdAt: time, updatedAt: time }
        await transaction.insert(appGroup).values({ ...group, permissions: [...group.permissions] })
        await record('group.create', resourceOf(name), { after: wireFields(group) })
        await notify({ what: 'groups', id: '' })
        return complete(transaction, group)
      }),

    change: (
      actor: Actor,
      name: string,
      { isExpected, fields }: { isExpected: IsExpected; fields: Partial<GroupFields> },
    ): Promise<Group> =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        const group = await requireChangeable(transaction, name, isExpected)
        const changes = differences(group, fields)
        if (changes === null) return complete(transaction, group)
        const changed = { ...group, ...fields, updatedAt: now() }
        if (changed.idpClaim !== group.idpClaim) {
          await requireFreeClaim(transaction, name, changed.idpClaim)
        }
        const row = { ...changed, permissions: [...changed.permissions] }
        await transaction.update(appGroup).set(row).where(eq(appGroup.name, name))
        await record('group.update', resourceOf(name), changes)
        await notify({ what: 'groups', id: '' })
        return complete(transaction, changed)
      }),

    /** With its manual memberships, its shares and its agents; memberships from tokens stay. */
    remove: (actor: Actor, name: string, isExpected: IsExpected): Promise<void> =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        const group = await requireChangeable(transaction, name, isExpected)
        if (Object.hasOwn(shippedGroups, name)) throw conflict(groupErrors.shipped)
        await transaction
          .delete(groupMember)
          .where(and(eq(groupMember.groupName, name), eq(groupMember.source, 'manual')))
        // Waits for references that are being added, which are then removed as well.
        await transaction.delete(appGroup).where(eq(appGroup.name, name))
        await removeGroupReferences(database, transaction, name)
        await record('group.delete', resourceOf(name), { before: wireFields(group) })
        // The permissions of its manual members are cached.
        await notify({ what: 'all', id: '' })
      }),
  }
}

const resourceOf = (id: string) => ({ type: 'group', id })

async function countMembers(
  handle: Handle,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (names.length === 0) return new Map()
  const rows = await handle.execute<{ name: string; members: number }>(sql`
    select group_name as name, count(distinct user_id)::integer as members
    from user_group
    where group_name in ${[...names]}
    group by group_name`)
  return new Map(rows.map(({ name, members }) => [name, members]))
}

export async function findGroup(handle: Handle, name: string): Promise<StoredGroup> {
  const [row] = await handle.select().from(appGroup).where(eq(appGroup.name, name))
  if (row === undefined) throw groupNotFound(name)
  return groupOf(row)
}

function groupOf(row: typeof appGroup.$inferSelect): StoredGroup {
  return { ...row, permissions: row.permissions.filter(isPermission) }
}

/** The version of a group, without its members. */
export function tagOf({ name, description, permissions, idpClaim, updatedAt }: StoredGroup) {
  const state = JSON.stringify([name, description, permissions, idpClaim, updatedAt])
  return new Bun.CryptoHasher('sha256').update(state).digest('hex').slice(0, tagChars)
}

function wireFields({ description, permissions, idpClaim }: GroupFields): JsonObject {
  return { description, permissions: sortPermissions(permissions), idp_claim: idpClaim }
}

/** Null if nothing changes. */
function differences(
  known: GroupFields,
  fields: Partial<GroupFields>,
): { before: JsonObject; after: JsonObject } | null {
  const before = wireFields(known)
  const after = wireFields({ ...known, ...fields })
  const changed = Object.keys(after).filter((name) => !Bun.deepEquals(before[name], after[name]))
  const only = (all: JsonObject) => Object.fromEntries(changed.map((name) => [name, all[name]]))
  return changed.length === 0 ? null : { before: only(before), after: only(after) }
}

async function requireNewName(transaction: Transaction, name: string): Promise<void> {
  const known = await transaction.select({ name: appGroup.name }).from(appGroup)
  if (known.length >= groupsMax) {
    const sentence = `There are ${groupsMax} groups, which is the limit; delete one first.`
    throw new AppError('unprocessable', sentence, { code: 'too_many_groups' })
  }
  if (known.some((other) => folded(other.name) === folded(name))) {
    throw conflict(groupErrors.exists, 'name')
  }
}

async function requireFreeClaim(
  transaction: Transaction,
  name: string,
  idpClaim: string | null,
): Promise<void> {
  if (idpClaim === null) return
  const isTaken = and(eq(appGroup.idpClaim, idpClaim), ne(appGroup.name, name))
  if ((await transaction.$count(appGroup, isTaken)) === 0) return
  throw conflict(groupErrors.claimTaken, 'idp_claim')
}

function folded(name: string): string {
  return name.normalize('NFKC').toUpperCase().toLowerCase()
}

export function groupNotFound(name: string): AppError {
  return new AppError('not_found', `There is no group with the id "${name}".`, { param: 'id' })
}

export const groupErrors = {
  exists: {
    code: 'group_exists',
    message: 'A group of this name exists already; names are compared regardless of case.',
  },
  claimTaken: {
    code: 'idp_claim_taken',
    message: 'Another group has this claim value of the identity provider.',
  },
  locked: {
    code: 'group_locked',
    message: 'The configuration file defines this group; change it there and restart.',
  },
  shipped: { code: 'group_shipped', message: 'A built-in group cannot be deleted.' },
}
