import { and, eq, gt, sql } from 'drizzle-orm'
import { createQueryRunner } from '#db/query-runner.ts'
import { appUser, groupMember, userGroup } from '#db/schema/auth.ts'
import type { DirectoryDatabase, Transaction } from '#directory/change-store.ts'
import type { Member } from './members.ts'
import type { Source } from './user-store.ts'

type Handle = Pick<Transaction, 'select'>

export function createMemberStore({ drizzle }: DirectoryDatabase) {
  const query = createQueryRunner()
  return {
    /** By id. */
    list: (group: string, page: { limit: number; after: string | undefined }): Promise<Member[]> =>
      query(() => listMembers(drizzle, group, page)),
  }
}

export async function findMember(
  handle: Handle,
  group: string,
  userId: string,
): Promise<Member | undefined> {
  const [member] = await listMembers(handle, group, { limit: 1, only: userId })
  return member
}

async function listMembers(
  handle: Handle,
  group: string,
  { limit, after, only }: { limit: number; after?: string | undefined; only?: string },
): Promise<Member[]> {
  const isGiven = and(
    eq(groupMember.userId, userGroup.userId),
    eq(groupMember.groupName, userGroup.groupName),
    eq(groupMember.source, 'manual'),
  )
  const rows = await handle
    .select({
      id: appUser.id,
      kind: appUser.kind,
      subject: appUser.subject,
      name: appUser.name,
      disabledAt: appUser.disabledAt,
      grantedBy: groupMember.grantedBy,
      grantedAt: groupMember.grantedAt,
      sources: sql<string>`string_agg(distinct ${userGroup.source}, ',')`,
    })
    .from(userGroup)
    .innerJoin(appUser, eq(appUser.id, userGroup.userId))
    .leftJoin(groupMember, isGiven)
    .where(
      and(
        eq(userGroup.groupName, group),
        after === undefined ? undefined : gt(appUser.id, after),
        only === undefined ? undefined : eq(appUser.id, only),
      ),
    )
    .groupBy(appUser.id, groupMember.grantedBy, groupMember.grantedAt)
    .orderBy(appUser.id)
    .limit(limit)
  return rows.map(({ sources, ...row }) => ({
    ...row,
    sources: sources.split(',').sort() as Source[],
  }))
}

/** False if the manual membership existed already. */
export async function addMember(
  transaction: Transaction,
  row: { userId: string; groupName: string; grantedBy: string; grantedAt: Date },
): Promise<boolean> {
  const added = await transaction
    .insert(groupMember)
    .values({ ...row, source: 'manual' })
    .onConflictDoNothing()
    .returning({ userId: groupMember.userId })
  return added.length > 0
}

/** False if there was no manual membership. */
export async function dropMember(
  transaction: Transaction,
  group: string,
  userId: string,
): Promise<boolean> {
  const dropped = await transaction
    .delete(groupMember)
    .where(
      and(
        eq(groupMember.userId, userId),
        eq(groupMember.groupName, group),
        eq(groupMember.source, 'manual'),
      ),
    )
    .returning({ userId: groupMember.userId })
  return dropped.length > 0
}
