import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable, pageQuery } from '#api/shapes.ts'
import { parseLabel, parsePage } from '#auth/schema.ts'
import { permissionNames } from '#config/schema.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import type { User, UserDetails, UserFilter, UserWish } from './users.ts'

/** The wire shapes of `/v1/users`. */

const searchCharsMax = 256

const kind = Type.Union([Type.Literal('user'), Type.Literal('service')])
const source = Type.Union([Type.Literal('idp'), Type.Literal('manual')], {
  description: '`idp`: by the last token; `manual`: given by hand.',
})
export const sources = Type.Array(source)
const time = (description: string) => nullable(Type.String({ format: 'date-time' }), description)

/** What is told of a user wherever one is shown. */
export const userIdentity = {
  kind,
  subject: Type.String({ description: 'The `sub` of their tokens, or what stands in its place.' }),
  name: nullable(Type.String(), 'As their token, or the maker of the account, calls them.'),
  disabled_at: time('Since when nothing that they hold is accepted.'),
}

const userFields = {
  id: Type.String({ format: 'uuid' }),
  object: Type.Literal('user'),
  ...userIdentity,
  last_seen_at: time('When they were last here, to the hour.'),
  created_at: instant('When they first came, or were made'),
  created_by: nullable(Type.String({ format: 'uuid' }), 'Of a service account: who made it.'),
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
          description: 'False for a word in their token that means no group, and grants nothing.',
        }),
      }),
    ),
    permissions: Type.Array(Type.Union(permissionNames.map((name) => Type.Literal(name))), {
      description: 'What their groups come to.',
    }),
  },
  { $id: 'UserDetails' },
)
export type UserDetailsRecord = Static<typeof userDetailsRecord>

export const userListQuery = Type.Object({
  q: Type.Optional(
    Type.String({
      description: 'A part of the name or the subject, in any case.',
      maxLength: searchCharsMax,
    }),
  ),
  kind: Type.Optional(kind),
  ...pageQuery.properties,
})

export const changeUserBody = Type.Object(
  {
    disabled: Type.Optional(Type.Boolean({ description: 'Whether what they hold is refused.' })),
    name: Type.Optional(Type.String({ description: 'Of a service account: 1 to 100 characters.' })),
  },
  { additionalProperties: false },
)
const changeChecker = compileChecker(changeUserBody)

/** Throws an `AppError` of status 422. */
export function parseChangeUser(body: unknown): UserWish {
  if (!changeChecker.check(body)) throw refusedBySchema(changeChecker.firstError(body))
  const { disabled, name } = body
  return {
    ...(disabled === undefined ? {} : { isDisabled: disabled }),
    ...(name === undefined ? {} : { name: parseLabel(name) }),
  }
}

/** Throws an `AppError` of status 422. */
export function parseUserQuery(query: Readonly<Record<string, string | undefined>>): {
  filter: UserFilter
  page: ReturnType<typeof parsePage>
} {
  const { q: text, kind } = query
  if (text !== undefined && (text.length > searchCharsMax || !isStorable(text))) {
    throw refused('q', `"q" must be plain text of at most ${searchCharsMax} characters.`)
  }
  if (kind !== undefined && kind !== 'user' && kind !== 'service') {
    throw refused('kind', '"kind" must be "user" or "service".')
  }
  return { filter: { text, kind }, page: parsePage(query) }
}

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

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
