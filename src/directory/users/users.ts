import type { Actor, AuditEntry } from '#audit/audit.ts'
import { inOrder, type Permission } from '#auth/permissions.ts'
import type { Changing, DirectoryDatabase, MakeChange } from '#directory/change-store.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import {
  changeUser,
  createUserStore,
  findUser,
  type HeldGroup,
  listHeld,
  type Source,
} from './store.ts'

type UserKind = 'user' | 'service'

/** A person who came with a token, or a service account. */
export type User = {
  readonly id: string
  readonly kind: UserKind
  readonly subject: string
  readonly name: string | null
  readonly disabledAt: Date | null
  /** To the hour. */
  readonly lastSeenAt: Date | null
  readonly createdAt: Date
  /** Of a service account: who made it. */
  readonly createdBy: string | null
}

/** A user with what they are in and may do. */
export type UserDetails = User & {
  readonly groups: readonly {
    readonly name: string
    readonly sources: readonly Source[]
    readonly isKnown: boolean
  }[]
  readonly permissions: readonly Permission[]
}

export type UserFilter = {
  /** In the name or the subject, in any case. */
  readonly text: string | undefined
  readonly kind: UserKind | undefined
}

export type UserWish = { readonly isDisabled?: boolean; readonly name?: string }

/** A user that is not there is `not_found`. */
export type Users = {
  /** By what they are called, from after the one with the id `after`. */
  list(
    filter: UserFilter,
    page: { limit: number; after: string | undefined },
  ): Promise<{ users: readonly User[]; hasMore: boolean }>
  find(id: string): Promise<UserDetails>
  /** Throws `conflict` of code `idp_managed` for the name of a person, which tokens bring. */
  change(actor: Actor, id: string, wish: UserWish): Promise<UserDetails>
}

export function createUsers({
  database,
  makeChange,
  now,
}: {
  database: DirectoryDatabase
  makeChange: MakeChange
  now: () => Date
}): Users {
  const store = createUserStore(database)
  return {
    async list(filter, { limit, after }) {
      const users = await store.list(filter, { limit: limit + 1, after })
      if (users === null) throw noPage()
      return { users: users.slice(0, limit), hasMore: users.length > limit }
    },
    async find(id) {
      const found = await store.find(id)
      if (found === undefined) throw absentUser(id)
      return detailsOf(found.user, found.held)
    },
    change: (actor, id, wish) =>
      makeChange(actor, async (changing) => {
        const before = await findUser(changing.transaction, id)
        if (before === undefined) throw absentUser(id)
        const renamed = await rename(changing, before, wish.name)
        const after = await setDisabled(changing, renamed, { wish: wish.isDisabled, time: now() })
        if (after !== before) await changing.announce({ what: 'user', id })
        return detailsOf(after, await listHeld(changing.transaction, id))
      }),
  }
}

async function rename(changing: Changing, user: User, name: string | undefined): Promise<User> {
  if (name === undefined || name === user.name) return user
  if (user.kind === 'user') throw managedName()
  await changeUser(changing.transaction, user.id, { name })
  await changing.record(entryOf('user.rename', user, { name: user.name }, { name }))
  return { ...user, name }
}

async function setDisabled(
  changing: Changing,
  user: User,
  { wish, time }: { wish: boolean | undefined; time: Date },
): Promise<User> {
  const isDisabled = user.disabledAt !== null
  if (wish === undefined || wish === isDisabled) return user
  const disabledAt = wish ? time : null
  await changeUser(changing.transaction, user.id, { disabledAt })
  const action = wish ? 'user.disable' : 'user.enable'
  await changing.record(entryOf(action, user, { disabled: isDisabled }, { disabled: wish }))
  return { ...user, disabledAt }
}

function entryOf(
  action: string,
  { id }: User,
  before: JsonObject,
  after: JsonObject,
): Omit<AuditEntry, 'actor'> {
  return { action, resource: { type: 'user', id }, changes: { before, after } }
}

/** Sources of one group are told together. */
export function detailsOf(user: User, held: readonly HeldGroup[]): UserDetails {
  const byName = Map.groupBy(held, ({ name }) => name)
  return {
    ...user,
    groups: [...byName].map(([name, rows]) => ({
      name,
      sources: rows.map(({ source }) => source),
      isKnown: rows.some(({ isKnown }) => isKnown),
    })),
    permissions: inOrder(held.flatMap(({ permissions }) => permissions)),
  }
}

export function absentUser(id: string): AppError {
  return new AppError('not_found', `There is no user with the id "${id}".`, { param: 'id' })
}

function noPage(): AppError {
  return new AppError('unprocessable', '"after" must be the id of a user.', { param: 'after' })
}

export const managedNameFailure = {
  code: 'idp_managed',
  message: 'What a person is called comes from the identity provider.',
}

function managedName(): AppError {
  const { code, message } = managedNameFailure
  return new AppError('conflict', message, { code, param: 'name' })
}
