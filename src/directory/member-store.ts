import { and, eq, gt, sql } from 'drizzle-orm'
import type { Actor } from '#audit/audit.ts'
import type { Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { appUser, groupMember, userGroup } from '#db/schema/auth.ts'
import { AppError } from '#lib/errors.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import { conflict, type DirectoryDeps } from './change-store.ts'
import { findGroup } from './group-store.ts'
import { findUser, type Source, type User } from './user-store.ts'

/** A user in a group: manually, by the last token, or both. */
export type Member = Pick<User, 'id' | 'kind' | 'subject' | 'name' | 'disabledAt'> & {
  readonly sources: readonly Source[]
  /** Of the manual membership; null without one. */
  readonly grantedBy: string | null
  readonly grantedAt: Date | null
}

export type Members = ReturnType<typeof createMembers>

/** Unknown groups and users are `not_found`. */
export function createMembers({ database: { drizzle }, makeChange, now }: DirectoryDeps) {
  const query = createQueryRunner()
  return {
    /** By id, after the user `after`. */
    list: (group: string, { limit, after }: PageRequest): Promise<Page<Member>> =>
      query(async () => {
        await findGroup(drizzle, group)
        const members = await listMembers(drizzle, group, { limit: limit + 1, after })
        return pageOf(members, limit)
      }),

    /** Adds a manual membership. */
    add: (actor: Actor, group: string, userId: string): Promise<Member> =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        await findGroup(transaction, group)
        await findUser(transaction, userId)
        const added = await transaction
          .insert(groupMember)
          .values({
            userId,
            groupName: group,
            source: 'manual',
            grantedBy: actor.userId,
            grantedAt: now(),
          })
          .onConflictDoNothing()
          .returning({ userId: groupMember.userId })
        if (added.length > 0) {
          const resource = { type: 'group', id: group }
          await record('group.member.add', resource, { after: { user_id: userId } })
          await notify({ what: 'user', id: userId })
        }
        const [member] = await listMembers(transaction, group, { limit: 1, only: userId })
        if (member === undefined) throw new Error('a member was not added')
        return member
      }),

    /**
     * Removes a manual membership. Throws `conflict` with the code `idp_managed` if the user is in the
     * group by token only.
     */
    remove: (actor: Actor, group: string, userId: string): Promise<void> =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        await findGroup(transaction, group)
        const removed = await transaction
          .delete(groupMember)
          .where(
            and(
              eq(groupMember.userId, userId),
              eq(groupMember.groupName, group),
              eq(groupMember.source, 'manual'),
            ),
          )
          .returning({ userId: groupMember.userId })
        if (removed.length === 0) {
          const [member] = await listMembers(transaction, group, { limit: 1, only: userId })
          throw member === undefined ? memberNotFound(userId) : conflict(idpMembershipError)
        }
        const resource = { type: 'group', id: group }
        await record('group.member.remove', resource, { before: { user_id: userId } })
        await notify({ what: 'user', id: userId })
      }),
  }
}

async function listMembers(
  handle: Pick<Transaction, 'select'>,
  group: string,
  { limit, after, only }: PageRequest & { only?: string },
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

function memberNotFound(userId: string): AppError {
  const sentence = `The user with the id "${userId}" is not in this group.`
  return new AppError('not_found', sentence, { param: 'user_id' })
}

export const idpMembershipError = {
  code: 'idp_managed',
  message: 'The user is in this group by token; change it at the identity provider.',
}
