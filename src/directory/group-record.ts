import { type Static, Type } from '@sinclair/typebox'
import { json } from '#api/endpoint.ts'
import { instant, instantExample, nullable, pageQuery } from '#api/shapes.ts'
import { permissionNames, sortPermissions } from '#auth/permissions.ts'
import { isStorable, readLabel } from '#lib/label.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import { type Group, type GroupFields, groupNotFound } from './group-store.ts'

const descriptionCharsMax = 1_000
/** The longest claim value of a token. */
const claimCharsMax = 255
/** Names from the configuration and from tokens may be longer than those of new groups. */
const idCharsMax = 1_000

/** A group id from a path; throws `not_found` for a text that cannot be one. */
export function readGroupId(id: string): string {
  if (id.length <= idCharsMax && isStorable(id)) return id
  throw groupNotFound(id)
}

const permission = Type.Union(permissionNames.map((name) => Type.Literal(name)))
const claimDescription = 'The claim value of a token that maps to this group; null: its name.'

const fields = {
  description: Type.Optional(Type.String({ maxLength: descriptionCharsMax })),
  permissions: Type.Optional(
    Type.Array(permission, { description: 'The permissions of its members.', maxItems: 100 }),
  ),
  idp_claim: Type.Optional(
    Type.Union([Type.String({ minLength: 1, maxLength: claimCharsMax }), Type.Null()], {
      description: claimDescription,
    }),
  ),
}

export const newGroup = Type.Object(
  {
    name: Type.String({
      description: '1 to 100 characters, unique regardless of case. It cannot be changed.',
    }),
    ...fields,
  },
  { additionalProperties: false },
)
export const changedGroup = Type.Object(fields, { additionalProperties: false })

export const groupPageQuery = Type.Object({
  limit: pageQuery.properties.limit,
  after: Type.Optional(
    Type.String({
      maxLength: idCharsMax,
      description: 'The id of the last item of the previous page.',
    }),
  ),
})

const newGroupChecker = compileChecker(newGroup)
const changedGroupChecker = compileChecker(changedGroup)

export function readNewGroup(body: unknown): { name: string; fields: GroupFields } {
  if (!newGroupChecker.check(body)) throw refusedBySchema(newGroupChecker.firstError(body))
  const given = readFields(body)
  const name = readLabel(body.name)
  // They have a meaning of their own in a path.
  if (name === '.' || name === '..') throw refused('name', '"name" must not consist of dots.')
  return { name, fields: { description: '', permissions: [], idpClaim: null, ...given } }
}

export const nameIsFixed =
  '"name" cannot be changed: shares and agents refer to the group by its name.'

export function readChangedGroup(body: unknown): Partial<GroupFields> {
  if (changedGroupChecker.check(body)) return readFields(body)
  const fault = changedGroupChecker.firstError(body)
  if (fault?.unknownField === true && fault.path === 'name') throw refused('name', nameIsFixed)
  throw refusedBySchema(fault)
}

function readFields(body: Static<typeof changedGroup>): Partial<GroupFields> {
  const { description, permissions, idp_claim: idpClaim } = body
  if (description !== undefined && !isStorable(description)) {
    throw refused('description', '"description" must be plain text.')
  }
  if (typeof idpClaim === 'string' && !(isStorable(idpClaim) && !/\p{Cc}/u.test(idpClaim))) {
    throw refused('idp_claim', '"idp_claim" must be plain text on one line.')
  }
  return {
    ...(description === undefined ? {} : { description }),
    ...(permissions === undefined ? {} : { permissions: sortPermissions(permissions) }),
    ...(idpClaim === undefined ? {} : { idpClaim }),
  }
}

export const groupRecord = Type.Object(
  {
    id: Type.String({ description: 'Its name.' }),
    object: Type.Literal('group'),
    name: Type.String(),
    description: Type.String(),
    permissions: Type.Array(permission),
    idp_claim: nullable(Type.String(), claimDescription),
    is_locked: Type.Boolean({ description: 'Whether the configuration file defines it.' }),
    is_shipped: Type.Boolean({ description: 'Whether it is built in and cannot be deleted.' }),
    members: Type.Integer({ description: 'The number of its members, manual or by token.' }),
    created_at: instant('When it was created'),
    updated_at: instant('When it was last changed, apart from its members'),
  },
  { $id: 'Group' },
)
type GroupRecord = Static<typeof groupRecord>

export function renderGroup(group: Group): GroupRecord {
  const { name, description, permissions, members } = group
  return {
    id: name,
    object: 'group',
    name,
    description,
    permissions: sortPermissions(permissions),
    idp_claim: group.idpClaim,
    is_locked: group.isLocked,
    is_shipped: group.isShipped,
    members,
    created_at: group.createdAt.toISOString(),
    updated_at: group.updatedAt.toISOString(),
  }
}

export const groupIdParam = { id: 'The name of the group, percent-encoded.' }
export const unknownGroup = 'There is no group with the id "editors".'
export const groupChanged = 'This group has changed since you read it.'
export const groupExample: GroupRecord = {
  id: 'editors',
  object: 'group',
  name: 'editors',
  description: 'Editors of the portal',
  permissions: ['can_access_api', 'can_edit_config'],
  idp_claim: 'portal-editors',
  is_locked: false,
  is_shipped: false,
  members: 4,
  created_at: instantExample,
  updated_at: instantExample,
}
export const groupResponse = {
  description: 'The group.',
  content: json(groupRecord, groupExample),
  headers: { etag: 'The version of the group, for `If-Match`.' },
}
