import type { Actor, AuditEntry } from '#audit/audit.ts'
import type { DirectoryDatabase, MakeChange } from '#directory/change-store.ts'
import { type Groups, orAbsent } from '#directory/groups/groups.ts'
import { findGroup } from '#directory/groups/store.ts'
import { findUser, type Source } from '#directory/users/store.ts'
import { absentUser, type User } from '#directory/users/users.ts'
import { AppError } from '#lib/errors.ts'
import { addMember, createMemberStore, dropMember, findMember } from './store.ts'

/** Somebody who is in a group, by what they were given, by their last token, or by both. */
export type Member = Pick<User, 'id' | 'kind' | 'subject' | 'name' | 'disabledAt'> & {
  readonly sources: readonly Source[]
  /** By whom and when it was given by hand; null where it was not. */
  readonly grantedBy: string | null
  readonly grantedAt: Date | null
}

/** A group or a user that is not there is `not_found`. */
export type Members = {
  /** By id, from after the one with the id `after`. */
  list(
    group: string,
    page: { limit: number; after: string | undefined },
  ): Promise<{ members: readonly Member[]; hasMore: boolean }>
  /** Puts somebody into a group by hand, whatever their tokens say. */
  add(actor: Actor, group: string, userId: string): Promise<Member>
  /**
   * Takes back what was given by hand. Throws `conflict` of code `idp_managed` for somebody who is
   * in the group by their token alone.
   */
  remove(actor: Actor, group: string, userId: string): Promise<void>
}

export function createMembers(deps: {
  database: DirectoryDatabase
  makeChange: MakeChange
  groups: Pick<Groups, 'find'>
  now: () => Date
}): Members {
  const { makeChange, groups, now } = deps
  const store = createMemberStore(deps.database)
  return {
    async list(group, { limit, after }) {
      await groups.find(group)
      const members = await store.list(group, { limit: limit + 1, after })
      return { members: members.slice(0, limit), hasMore: members.length > limit }
    },
    add: (actor, group, userId) =>
      makeChange(actor, async ({ transaction, record, announce }) => {
        orAbsent(await findGroup(transaction, group), group)
        if ((await findUser(transaction, userId)) === undefined) throw absentUser(userId)
        const row = { userId, groupName: group, grantedBy: actor.userId, grantedAt: now() }
        if (await addMember(transaction, row)) {
          await record(entryOf('group.member.add', group, { after: { user_id: userId } }))
          await announce({ what: 'user', id: userId })
        }
        const member = await findMember(transaction, group, userId)
        if (member === undefined) throw new Error('a member was not added')
        return member
      }),
    remove: (actor, group, userId) =>
      makeChange(actor, async ({ transaction, record, announce }) => {
        orAbsent(await findGroup(transaction, group), group)
        if (!(await dropMember(transaction, group, userId))) {
          throw (await findMember(transaction, group, userId)) === undefined
            ? absentMember(userId)
            : managed()
        }
        await record(entryOf('group.member.remove', group, { before: { user_id: userId } }))
        await announce({ what: 'user', id: userId })
      }),
  }
}

function entryOf(
  action: string,
  group: string,
  changes: Partial<AuditEntry['changes']>,
): Omit<AuditEntry, 'actor'> {
  const resource = { type: 'group', id: group }
  return { action, resource, changes: { before: null, after: null, ...changes } }
}

function absentMember(userId: string): AppError {
  const sentence = `The user with the id "${userId}" is not in this group.`
  return new AppError('not_found', sentence, { param: 'user_id' })
}

export const managedFailure = {
  code: 'idp_managed',
  message: 'They are in this group by their token; change it at the identity provider.',
}

function managed(): AppError {
  const { code, message } = managedFailure
  return new AppError('conflict', message, { code })
}
