import { and, eq, sql } from 'drizzle-orm'
import { isPermission, type Permission } from '#auth/permissions.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { appGroup, groupMember } from '#db/schema/auth.ts'
import type { DirectoryDatabase, Transaction } from '#directory/change-store.ts'

export type StoredGroup = {
  readonly name: string
  readonly description: string
  readonly permissions: readonly Permission[]
  readonly idpClaim: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type CountedGroup = StoredGroup & { readonly members: number }

type Handle = Pick<Transaction, 'select' | 'execute'>

export function createGroupStore({ drizzle }: DirectoryDatabase) {
  const query = createQueryRunner()
  return {
    /** By name, after the given one. */
    list: (page: { limit: number; after: string | undefined }): Promise<CountedGroup[]> =>
      query(async () => {
        // The order of pages must not depend on the collation of the database.
        const key = sql`${appGroup.name} collate "C"`
        const rows = await drizzle
          .select()
          .from(appGroup)
          .where(page.after === undefined ? undefined : sql`${key} > ${page.after}`)
          .orderBy(key)
          .limit(page.limit)
        const groups = rows.map(groupOf)
        const counts = await countMembers(
          drizzle,
          groups.map(({ name }) => name),
        )
        return groups.map((group) => ({ ...group, members: counts.get(group.name) ?? 0 }))
      }),

    find: (name: string): Promise<CountedGroup | undefined> =>
      query(async () => {
        const group = await findGroup(drizzle, name)
        return group === undefined ? undefined : withCount(drizzle, group)
      }),
  }
}

export async function withCount(handle: Handle, group: StoredGroup): Promise<CountedGroup> {
  const counts = await countMembers(handle, [group.name])
  return { ...group, members: counts.get(group.name) ?? 0 }
}

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

export async function findGroup(handle: Handle, name: string): Promise<StoredGroup | undefined> {
  const [row] = await handle.select().from(appGroup).where(eq(appGroup.name, name))
  return row === undefined ? undefined : groupOf(row)
}

/** The unique fields of all groups. */
export function listIdentities(transaction: Transaction) {
  return transaction.select({ name: appGroup.name, idpClaim: appGroup.idpClaim }).from(appGroup)
}

export async function addGroup(transaction: Transaction, group: StoredGroup): Promise<void> {
  await transaction.insert(appGroup).values({ ...group, permissions: [...group.permissions] })
}

export async function changeGroup(transaction: Transaction, group: StoredGroup): Promise<void> {
  const { name, description, permissions, idpClaim, updatedAt } = group
  await transaction
    .update(appGroup)
    .set({ description, permissions: [...permissions], idpClaim, updatedAt })
    .where(eq(appGroup.name, name))
}

/** With its manual memberships; those from tokens stay. */
export async function dropGroup(transaction: Transaction, name: string): Promise<void> {
  await transaction
    .delete(groupMember)
    .where(and(eq(groupMember.groupName, name), eq(groupMember.source, 'manual')))
  await transaction.delete(appGroup).where(eq(appGroup.name, name))
}

function groupOf(row: typeof appGroup.$inferSelect): StoredGroup {
  return { ...row, permissions: row.permissions.filter(isPermission) }
}
