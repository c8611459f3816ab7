import type { Actor } from '#audit/audit.ts'
import type { ApiKeys } from '#auth/api-keys.ts'
import { serviceSubjectOf } from '#auth/principal.ts'
import type { MakeChange, Transaction } from '#directory/change-store.ts'
import { AppError } from '#lib/errors.ts'
import { findGroup } from './group-store.ts'
import {
  addServiceAccount,
  countServiceAccounts,
  dropServiceAccount,
} from './service-account-store.ts'
import { findUser, listMemberships } from './user-store.ts'
import { detailsOf, type UserDetails, type Users } from './users.ts'

/** Users that are programs. Unknown ids, and ids of persons, are `not_found`. */
export type ServiceAccounts = {
  /** Throws `unprocessable` with the code `group_not_found` or `too_many_service_accounts`. */
  create(
    actor: Actor,
    account: { readonly name: string; readonly groups: readonly string[] },
  ): Promise<UserDetails>
  /** Its keys stop working on every replica within a second. */
  remove(actor: Actor, id: string): Promise<void>
  createKey(
    actor: Actor,
    id: string,
    key: Parameters<ApiKeys['create']>[2],
  ): ReturnType<ApiKeys['create']>
  listKeys(id: string, page: Parameters<ApiKeys['list']>[1]): ReturnType<ApiKeys['list']>
  /** False if the account has no such key. */
  revokeKey(actor: Actor, id: string, keyId: string): Promise<boolean>
}

const serviceAccountsMax = 10_000

export function createServiceAccounts(deps: {
  makeChange: MakeChange
  users: Pick<Users, 'find'>
  keys: ApiKeys
  now: () => Date
}): ServiceAccounts {
  const { makeChange, users, keys, now } = deps
  const requireAccount = async (id: string) => {
    const user = await users.find(id)
    if (user.kind !== 'service') throw serviceAccountNotFound(id)
    return user
  }
  return {
    create: (actor, { name, groups }) =>
      makeChange(actor, async ({ transaction, record }) => {
        await requireCapacity(transaction)
        for (const [index, group] of groups.entries()) {
          if ((await findGroup(transaction, group)) === undefined) throw unknownGroup(index)
        }
        const id = Bun.randomUUIDv7()
        const subject = serviceSubjectOf(id)
        const times = { createdBy: actor.userId, createdAt: now() }
        await addServiceAccount(transaction, { id, subject, name, groups, ...times })
        await record({
          action: 'service_account.create',
          resource: { type: 'service_account', id },
          changes: { before: null, after: { name, groups } },
        })
        const user = await findUser(transaction, id)
        if (user === undefined) throw new Error('a service account was not added')
        return detailsOf(user, await listMemberships(transaction, id))
      }),
    remove: (actor, id) =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        const memberships = await listMemberships(transaction, id)
        const dropped = await dropServiceAccount(transaction, id)
        if (dropped === null) throw serviceAccountNotFound(id)
        await record({
          action: 'service_account.delete',
          resource: { type: 'service_account', id },
          changes: {
            before: { name: dropped.name, groups: memberships.map(({ name }) => name) },
            after: null,
          },
        })
        await notify({ what: 'user', id })
      }),
    async createKey(actor, id, key) {
      const { subject } = await requireAccount(id)
      return keys.create(actor, { userId: id, subject, kind: 'service' }, key)
    },
    async listKeys(id, page) {
      await requireAccount(id)
      return keys.list(id, page)
    },
    async revokeKey(actor, id, keyId) {
      await requireAccount(id)
      return keys.revoke(actor, id, keyId)
    },
  }
}

async function requireCapacity(transaction: Transaction): Promise<void> {
  if ((await countServiceAccounts(transaction)) < serviceAccountsMax) return
  throw new AppError(
    'unprocessable',
    `There are ${serviceAccountsMax} service accounts, which is the limit; delete one first.`,
    { code: 'too_many_service_accounts' },
  )
}

export const unknownGroupError = {
  code: 'group_not_found',
  message: 'There is no group of this name.',
}

function unknownGroup(index: number): AppError {
  const { code, message } = unknownGroupError
  return new AppError('unprocessable', message, { code, param: `groups[${index}]` })
}

export function serviceAccountNotFound(id: string): AppError {
  const sentence = `There is no service account with the id "${id}".`
  return new AppError('not_found', sentence, { param: 'id' })
}
