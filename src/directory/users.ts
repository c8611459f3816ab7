import type { Actor, AuditEntry } from '#audit/audit.ts'
import { type Permission, sortPermissions } from '#auth/permissions.ts'
import type { Changing, DirectoryDatabase, MakeChange } from '#directory/change-store.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import {
  changeUser,
  createUserStore,
  findUser,
  listMemberships,
  type Membership,
  type Source,
} from './user-store.ts'

type UserKind = 'user' | 'service'

/** A person seen with a token, or a service account. */
export type User = {
  readonly id: string
  readonly kind: UserKind
  readonly subject: string
  readonly name: string | null
  readonly disabledAt: Date | null
  /** To the hour. */
  readonly lastSeenAt: Date | null
  readonly createdAt: Date
  /** The creator of a service account. */
  readonly createdBy: string | null
}

/** A user with groups and permissions. */
export type UserDetails = User & {
  readonly groups: readonly {
    readonly name: string
    readonly sources: readonly Source[]
    readonly isKnown: boolean
  }[]
  readonly permissions: readonly Permission[]
}

export type UserFilter = {
  /** Part of the name or the subject, in any case. */
  readonly text: string | undefined
  readonly kind: UserKind | undefined
}

export type UserChange = { readonly isDisabled?: boolean; readonly name?: string }

/** Unknown users are `not_found`. */
export type Users = {
  /** By name, after the user `after`. */
  list(
    filter: UserFilter,
    page: { limit: number; after: string | undefined },
  ): Promise<{ users: readonly User[]; hasMore: boolean }>
  find(id: string): Promise<UserDetails>
  /** Throws `conflict` with the code `idp_managed` for the name of a person, which comes from tokens. */
  change(actor: Actor, id: string, fields: UserChange): Promise<UserDetails>
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
      if (users === null) throw invalidPage()
      return { users: users.slice(0, limit), hasMore: users.length > limit }
    },
    async find(id) {
      const found = await store.find(id)
      if (found === undefined) throw userNotFound(id)
      return detailsOf(found.user, found.memberships)
    },
    change: (actor, id, fields) =>
      makeChange(actor, async (changing) => {
        const before = await findUser(changing.transaction, id)
        if (before === undefined) throw userNotFound(id)
        const renamed = await rename(changing, before, fields.name)
        const after = await setDisabled(changing, renamed, fields.isDisabled, now())
        if (after !== before) await changing.notify({ what: 'user', id })
        return detailsOf(after, await listMemberships(changing.transaction, id))
      }),
  }
}

async function rename(changing: Changing, user: User, name: string | undefined): Promise<User> {
  if (name === undefined || name === user.name) return user
  if (user.kind === 'user')
    throw new AppError('conflict', idpNameError.message, { code: idpNameError.code, param: 'name' })
  await changeUser(changing.transaction, user.id, { name })
  await changing.record(entryOf('user.rename', user, { name: user.name }, { name }))
  return { ...user, name }
}

async function setDisabled(
  changing: Changing,
  user: User,
  disabled: boolean | undefined,
  time: Date,
): Promise<User> {
  const isDisabled = user.disabledAt !== null
  if (disabled === undefined || disabled === isDisabled) return user
  const disabledAt = disabled ? time : null
  await changeUser(changing.transaction, user.id, { disabledAt })
  const action = disabled ? 'user.disable' : 'user.enable'
  await changing.record(entryOf(action, user, { disabled: isDisabled }, { disabled }))
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

/** Merges the sources of each group. */
export function detailsOf(user: User, memberships: readonly Membership[]): UserDetails {
  const byName = Map.groupBy(memberships, ({ name }) => name)
  return {
    ...user,
    groups: [...byName].map(([name, rows]) => ({
      name,
      sources: rows.map(({ source }) => source),
      isKnown: rows.some(({ isKnown }) => isKnown),
    })),
    permissions: sortPermissions(memberships.flatMap(({ permissions }) => permissions)),
  }
}

export function userNotFound(id: string): AppError {
  return new AppError('not_found', `There is no user with the id "${id}".`, { param: 'id' })
}

function invalidPage(): AppError {
  return new AppError('unprocessable', '"after" must be the id of a user.', { param: 'after' })
}

export const idpNameError = {
  code: 'idp_managed',
  message: 'The name of a person comes from the identity provider.',
}
