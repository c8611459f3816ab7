import type { Actor } from '#audit/audit.ts'
import type { KeyRing } from '#auth/key-ring.ts'
import { serviceSubjectOf } from '#auth/principal.ts'
import type { MakeChange, Transaction } from '#directory/change-store.ts'
import { findGroup } from '#directory/groups/store.ts'
import { findUser, listHeld } from '#directory/users/store.ts'
import { detailsOf, type UserDetails, type Users } from '#directory/users/users.ts'
import { AppError } from '#lib/errors.ts'
import { addServiceAccount, countServiceAccounts, dropServiceAccount } from './store.ts'

/** Users that are programs. One that is not there is `not_found`, and so is the id of a person. */
export type ServiceAccounts = {
  /** Throws `unprocessable` of code `group_not_found` or `too_many_service_accounts`. */
  create(
    actor: Actor,
    wish: { readonly name: string; readonly groups: readonly string[] },
  ): Promise<UserDetails>
  /** Its keys end with it, everywhere within a second. */
  remove(actor: Actor, id: string): Promise<void>
  createKey(
    actor: Actor,
    id: string,
    wish: Parameters<KeyRing['create']>[2],
  ): ReturnType<KeyRing['create']>
  listKeys(id: string, page: Parameters<KeyRing['list']>[1]): ReturnType<KeyRing['list']>
  /** Says whether the account had this key. */
  revokeKey(actor: Actor, id: string, keyId: string): Promise<boolean>
}

const serviceAccountsMax = 10_000

export function createServiceAccounts(deps: {
  makeChange: MakeChange
  users: Pick<Users, 'find'>
  keyRing: KeyRing
  now: () => Date
}): ServiceAccounts {
  const { makeChange, users, keyRing, now } = deps
  const demand = async (id: string) => {
    const user = await users.find(id)
    if (user.kind !== 'service') throw absent(id)
    return user
  }
  return {
    create: (actor, { name, groups }) =>
      makeChange(actor, async ({ transaction, record }) => {
        await demandRoom(transaction)
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
        return detailsOf(user, await listHeld(transaction, id))
      }),
    remove: (actor, id) =>
      makeChange(actor, async ({ transaction, record, announce }) => {
        const held = await listHeld(transaction, id)
        const dropped = await dropServiceAccount(transaction, id)
        if (dropped === null) throw absent(id)
        await record({
          action: 'service_account.delete',
          resource: { type: 'service_account', id },
          changes: {
            before: { name: dropped.name, groups: held.map(({ name }) => name) },
            after: null,
          },
        })
        await announce({ what: 'user', id })
      }),
    async createKey(actor, id, wish) {
      const { subject } = await demand(id)
      return keyRing.create(actor, { userId: id, subject, kind: 'service' }, wish)
    },
    async listKeys(id, page) {
      await demand(id)
      return keyRing.list(id, page)
    },
    async revokeKey(actor, id, keyId) {
      await demand(id)
      return keyRing.revoke(actor, id, keyId)
    },
  }
}

async function demandRoom(transaction: Transaction): Promise<void> {
  if ((await countServiceAccounts(transaction)) < serviceAccountsMax) return
  throw new AppError(
    'unprocessable',
    `There are ${serviceAccountsMax} service accounts, which is the limit; delete one first.`,
    { code: 'too_many_service_accounts' },
  )
}

export const unknownGroupFailure = {
  code: 'group_not_found',
  message: 'There is no group of this name.',
}

function unknownGroup(index: number): AppError {
  const { code, message } = unknownGroupFailure
  return new AppError('unprocessable', message, { code, param: `groups[${index}]` })
}

export function absent(id: string): AppError {
  const sentence = `There is no service account with the id "${id}".`
  return new AppError('not_found', sentence, { param: 'id' })
}
