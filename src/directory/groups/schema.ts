import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import { inOrder } from '#auth/permissions.ts'
import { parseLabel, parsePage } from '#auth/schema.ts'
import { permissionNames } from '#config/schema.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import type { Group, GroupFields } from './groups.ts'

/** The wire shapes of `/v1/groups`. */

const descriptionCharsMax = 1_000
/** As many as a word of a token may have. */
const claimCharsMax = 255
/** Those in the configuration and in tokens may be longer than what is made here. */
const idCharsMax = 1_000

const permission = Type.Union(permissionNames.map((name) => Type.Literal(name)))

const fields = {
  description: Type.Optional(Type.String({ maxLength: descriptionCharsMax })),
  permissions: Type.Optional(
    Type.Array(permission, { description: 'What its members may do.', maxItems: 100 }),
  ),
  idp_claim: Type.Optional(
    Type.Union([Type.String({ minLength: 1, maxLength: claimCharsMax }), Type.Null()], {
      description: 'The word in a token that stands for this group; null: its name.',
    }),
  ),
}

export const createGroupBody = Type.Object(
  {
    name: Type.String({
      description: 'Of 1 to 100 characters, unique whatever its case. It never changes.',
    }),
    ...fields,
  },
  { additionalProperties: false },
)
export const changeGroupBody = Type.Object(fields, { additionalProperties: false })

export const groupRecord = Type.Object(
  {
    id: Type.String({ description: 'Its name.' }),
    object: Type.Literal('group'),
    name: Type.String(),
    description: Type.String(),
    permissions: Type.Array(permission),
    idp_claim: nullable(Type.String(), 'The word in a token that stands for it; null: its name.'),
    is_locked: Type.Boolean({
      description: 'Whether the configuration says what it may do, so that nobody else can.',
    }),
    is_shipped: Type.Boolean({ description: 'Whether it was there from the start, and stays.' }),
    members: Type.Integer({ description: 'How many are in it, by hand or by their tokens.' }),
    created_at: instant('When it was made'),
    updated_at: instant('When it was last changed, apart from its members'),
  },
  { $id: 'Group' },
)
export type GroupRecord = Static<typeof groupRecord>

const createChecker = compileChecker(createGroupBody)
const changeChecker = compileChecker(changeGroupBody)

/** Throws an `AppError` of status 422. */
export function parseCreateGroup(body: unknown): { name: string; fields: GroupFields } {
  if (!createChecker.check(body)) throw refusedBySchema(createChecker.firstError(body))
  const given = readFields(body)
  const name = parseLabel(body.name)
  // In a path they would mean another place.
  if (name === '.' || name === '..') throw refused('name', '"name" must not consist of dots.')
  return {
    name,
    fields: { description: '', permissions: [], idpClaim: null, ...given },
  }
}

/** Throws an `AppError` of status 422. */
export function parseChangeGroup(body: unknown): Partial<GroupFields> {
  if (changeChecker.check(body)) return readFields(body)
  const fault = changeChecker.firstError(body)
  if (fault?.unknownField === true && fault.path === 'name') {
    throw refused('name', '"name" cannot be changed: shares and agents know the group by it.')
  }
  throw refusedBySchema(fault)
}

function readFields(body: Static<typeof changeGroupBody>): Partial<GroupFields> {
  const { description, permissions, idp_claim: idpClaim } = body
  if (description !== undefined && !isStorable(description)) {
    throw refused('description', '"description" must be plain text.')
  }
  if (typeof idpClaim === 'string' && !(isStorable(idpClaim) && !/\p{Cc}/u.test(idpClaim))) {
    throw refused('idp_claim', '"idp_claim" must be plain text on one line.')
  }
  return {
    ...(description === undefined ? {} : { description }),
    ...(permissions === undefined ? {} : { permissions: inOrder(permissions) }),
    ...(idpClaim === undefined ? {} : { idpClaim }),
  }
}

/** One page of a list that goes by names; throws an `AppError` of status 422. */
export function parseGroupPage(query: Readonly<Record<string, string | undefined>>) {
  return parsePage(query, isGroupId)
}

/** Whether a group could have this id. */
export function isGroupId(id: string): boolean {
  return id.length <= idCharsMax && isStorable(id)
}

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

export function renderGroup(group: Group): GroupRecord {
  const { name, description, permissions, members } = group
  return {
    id: name,
    object: 'group',
    name,
    description,
    permissions: inOrder(permissions),
    idp_claim: group.idpClaim,
    is_locked: group.isLocked,
    is_shipped: group.isShipped,
    members,
    created_at: group.createdAt.toISOString(),
    updated_at: group.updatedAt.toISOString(),
  }
}
