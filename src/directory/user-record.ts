import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import { permissionNames } from '#auth/permissions.ts'
import { isUuid } from '#lib/uuid.ts'
import { type User, type UserDetails, userNotFound } from './user-store.ts'

/** A user id from a path; throws `not_found` for a text that cannot be one. */
export function readUserId(id: string): string {
  if (isUuid(id)) return id.toLowerCase()
  throw userNotFound(id)
}

export const kind = Type.Union([Type.Literal('user'), Type.Literal('service')])
const source = Type.Union([Type.Literal('idp'), Type.Literal('manual')], {
  description: '`idp`: by the last token; `manual`: added by an administrator.',
})
export const sources = Type.Array(source)
const time = (description: string) => nullable(Type.String({ format: 'date-time' }), description)

/** Common to all records of a user. */
export const userIdentity = {
  kind,
  subject: Type.String({
    description: 'The `sub` of their tokens; of a service account, its own.',
  }),
  name: nullable(Type.String(), 'From their token, or as the service account was named.'),
  disabled_at: time('When the user was disabled.'),
}

const userFields = {
  id: Type.String({ format: 'uuid' }),
  object: Type.Literal('user'),
  ...userIdentity,
  last_seen_at: time('The last request, to the hour.'),
  created_at: instant('When the user was first seen or created'),
  created_by: nullable(Type.String({ format: 'uuid' }), 'The creator of a service account.'),
}

export const userRecord = Type.Object(userFields, { $id: 'User' })
export type UserRecord = Static<typeof userRecord>

export const userDetailsRecord = Type.Object(
  {
    ...userFields,
    groups: Type.Array(
      Type.Object({
        id: Type.String(),
        name: Type.String(),
        sources,
        is_known: Type.Boolean({
          description: 'False for a claim value that maps to no group and grants nothing.',
        }),
      }),
    ),
    permissions: Type.Array(Type.Union(permissionNames.map((name) => Type.Literal(name))), {
      description: 'The permissions of their groups.',
    }),
  },
  { $id: 'UserDetails' },
)
export type UserDetailsRecord = Static<typeof userDetailsRecord>

export function renderIdentity({
  kind,
  subject,
  name,
  disabledAt,
}: Pick<User, 'kind' | 'subject' | 'name' | 'disabledAt'>) {
  return { kind, subject, name, disabled_at: disabledAt?.toISOString() ?? null }
}

export function renderUser(user: User): UserRecord {
  return {
    id: user.id,
    object: 'user',
    ...renderIdentity(user),
    last_seen_at: user.lastSeenAt?.toISOString() ?? null,
    created_at: user.createdAt.toISOString(),
    created_by: user.createdBy,
  }
}

export function renderUserDetails(user: UserDetails): UserDetailsRecord {
  return {
    ...renderUser(user),
    groups: user.groups.map(({ name, sources, isKnown }) => ({
      id: name,
      name,
      sources: [...sources],
      is_known: isKnown,
    })),
    permissions: [...user.permissions],
  }
}
