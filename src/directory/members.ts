import type { Actor, AuditEntry } from '#audit/audit.ts'
import type { DirectoryDatabase, MakeChange } from '#directory/change-store.ts'
import { AppError } from '#lib/errors.ts'
import { findGroup } from './group-store.ts'
import { type Groups, requireGroup } from './groups.ts'
import { addMember, createMemberStore, dropMember, findMember } from './member-store.ts'
import { findUser, type Source } from './user-store.ts'
import { type User, userNotFound } from './users.ts'

/** A user in a group: manually, by the last token, or both. */
export type Member = Pick<User, 'id' | 'kind' | 'subject' | 'name' | 'disabledAt'> & {
  readonly sources: readonly Source[]
  /** Of the manual membership; null without one. */
  readonly grantedBy: string | null
  readonly grantedAt: Date | null
}

/** Unknown groups and users are `not_found`. */
export type Members = {
  /** By id, after the user `after`. */
  list(
    group: string,
    page: { limit: number; after: string | undefined },
  ): Promise<{ members: readonly Member[]; hasMore: boolean }>
  /** Adds a manual membership. */
  add(actor: Actor, group: string, userId: string): Promise<Member>
  /**
   * Removes a manual membership. Throws `conflict` with the code `idp_managed` if the user is in the
   * group by token only.
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
      makeChange(actor, async ({ transaction, record, notify }) => {
        requireGroup(await findGroup(transaction, group), group)
        if ((await findUser(transaction, userId)) === undefined) throw userNotFound(userId)
        const row = { userId, groupName: group, grantedBy: actor.userId, grantedAt: now() }
        if (await addMember(transaction, row)) {
          await record(entryOf('group.member.add', group, { after: { user_id: userId } }))
          await notify({ what: 'user', id: userId })
        }
        const member = await findMember(transaction, group, userId)
        if (member === undefined) throw new Error('a member was not added')
        return member
      }),
    remove: (actor, group, userId) =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        requireGroup(await findGroup(transaction, group), group)
        if (!(await dropMember(transaction, group, userId))) {
          throw (await findMember(transaction, group, userId)) === undefined
            ? memberNotFound(userId)
            : new AppError('conflict', idpMembershipError.message, {
                code: idpMembershipError.code,
              })
        }
        await record(entryOf('group.member.remove', group, { before: { user_id: userId } }))
        await notify({ what: 'user', id: userId })
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

function memberNotFound(userId: string): AppError {
  const sentence = `The user with the id "${userId}" is not in this group.`
  return new AppError('not_found', sentence, { param: 'user_id' })
}

export const idpMembershipError = {
  code: 'idp_managed',
  message: 'The user is in this group by token; change it at the identity provider.',
}
