import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody, type ResponseSettings } from '#api/endpoint.ts'
import {
  deleted,
  ifMatchHeader,
  instant,
  instantExample,
  listExample,
  listOf,
  listPage,
  nullable,
  pageQuery,
} from '#api/shapes.ts'
import { actorOf } from '#audit/audit.ts'
import { sortPermissions } from '#auth/permissions.ts'
import { permissionNames } from '#config/schema.ts'
import { withCurrentTag } from '#http/precondition.ts'
import { entityTag, readIfMatch } from '#lib/entity-tag.ts'
import { isStorable, readLabel } from '#lib/label.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import { lastAdminError } from './change-store.ts'
import {
  type Group,
  type GroupFields,
  type Groups,
  groupErrors,
  requireGroup,
  tagOf,
} from './groups.ts'

/** Groups and the permissions of their members. */
export function groupEndpoints({ groups }: { groups: Groups }): Endpoint[] {
  const respond = (group: Group, set: ResponseSettings) => {
    set.headers['etag'] = entityTag(tagOf(group))
    return renderGroup(group)
  }
  const currentTag = (id: string) => async () => tagOf(await groups.find(id))
  return [
    endpoint({
      method: 'POST',
      path: '/v1/groups',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Create a group',
      description:
        'A user has the union of the permissions of their groups. A claim value of a token maps to the group with that `idp_claim`, otherwise to the group of that name, unless that group has another `idp_claim`.',
      body: jsonBody(newGroup, {
        example: { name: 'editors', permissions: ['can_access_api'] },
        read: readNewGroup,
      }),
      responses: { 200: groupResponse },
      errors: {
        unknown_field: '"members" is not a known field.',
        unprocessable: [
          '"name" must have 1 to 100 characters.',
          {
            code: 'too_many_groups',
            message: 'There are 1000 groups, which is the limit; delete one first.',
          },
        ],
        conflict: [groupErrors.exists, groupErrors.claimTaken, lastAdminError],
      },
      handle: async ({ body: { name, fields }, context, set }) =>
        respond(await groups.create(actorOf(context), name, fields), set),
    }),

    endpoint({
      method: 'GET',
      path: '/v1/groups',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'List the groups',
      description: 'By name. Claim values that map to no group are not listed.',
      query: groupPageQuery,
      responses: {
        200: {
          description: 'A page of groups.',
          content: json(listOf(groupRecord), listExample(groupExample)),
        },
      },
      errors: { unprocessable: '"limit" must be a whole number from 1 to 100.' },
      async handle({ query }) {
        const page = await groups.list({ after: undefined, ...query })
        return listPage(page.groups.map(renderGroup), page.hasMore)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/groups/:id',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Retrieve a group',
      params: groupIdParam,
      responses: { 200: groupResponse },
      errors: { not_found: groupNotFound },
      handle: async ({ params: { id }, set }) => respond(await groups.find(readGroupId(id)), set),
    }),

    endpoint({
      method: 'PATCH',
      path: '/v1/groups/:id',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Update a group',
      description:
        'Absent fields keep their values. The change takes effect immediately for every token and API key, on every replica.',
      params: groupIdParam,
      headers: ifMatchHeader,
      body: jsonBody(changedGroup, {
        example: { permissions: ['can_access_api'] },
        read: readChangedGroup,
      }),
      responses: { 200: groupResponse },
      errors: {
        unprocessable: nameIsFixed,
        unknown_field: '"members" is not a known field.',
        not_found: groupNotFound,
        conflict: [groupErrors.locked, groupErrors.claimTaken, lastAdminError],
        precondition_failed: groupChanged,
      },
      async handle({ params: { id }, body: fields, context, request, set }) {
        const isExpected = readIfMatch(request.headers.get('if-match'))
        const change = () =>
          groups.change(actorOf(context), readGroupId(id), { isExpected, fields })
        return respond(await withCurrentTag(set, currentTag(id), change), set)
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/groups/:id',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Delete a group',
      description:
        'Also deletes its manual memberships. Shares and agents that name the group, and claim values in tokens, stay.',
      params: groupIdParam,
      headers: ifMatchHeader,
      responses: {
        200: {
          description: 'The group is deleted.',
          content: json(deleted('group.deleted'), {
            id: 'editors',
            object: 'group.deleted',
            deleted: true,
          }),
        },
      },
      errors: {
        not_found: groupNotFound,
        conflict: [groupErrors.locked, groupErrors.shipped, lastAdminError],
        precondition_failed: groupChanged,
      },
      async handle({ params: { id }, context, request, set }) {
        const isExpected = readIfMatch(request.headers.get('if-match'))
        const remove = () => groups.remove(actorOf(context), readGroupId(id), isExpected)
        await withCurrentTag(set, currentTag(id), remove)
        return { id, object: 'group.deleted', deleted: true }
      },
    }),
  ]
}

const descriptionCharsMax = 1_000
/** The longest claim value of a token. */
const claimCharsMax = 255
/** Names from the configuration and from tokens may be longer than those of new groups. */
const idCharsMax = 1_000

/** A group id from a path; throws `not_found` for a text that cannot be one. */
export function readGroupId(id: string): string {
  return requireGroup(id.length <= idCharsMax && isStorable(id) ? id : undefined, id)
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

const newGroup = Type.Object(
  {
    name: Type.String({
      description: '1 to 100 characters, unique regardless of case. It cannot be changed.',
    }),
    ...fields,
  },
  { additionalProperties: false },
)
const changedGroup = Type.Object(fields, { additionalProperties: false })

const groupPageQuery = Type.Object({
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

function readNewGroup(body: unknown): { name: string; fields: GroupFields } {
  if (!newGroupChecker.check(body)) throw refusedBySchema(newGroupChecker.firstError(body))
  const given = readFields(body)
  const name = readLabel(body.name)
  // They have a meaning of their own in a path.
  if (name === '.' || name === '..') throw refused('name', '"name" must not consist of dots.')
  return { name, fields: { description: '', permissions: [], idpClaim: null, ...given } }
}

const nameIsFixed = '"name" cannot be changed: shares and agents refer to the group by its name.'

function readChangedGroup(body: unknown): Partial<GroupFields> {
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

const groupRecord = Type.Object(
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

function renderGroup(group: Group): GroupRecord {
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
export const groupNotFound = 'There is no group with the id "editors".'
const groupChanged = 'This group has changed since you read it.'
const groupExample: GroupRecord = {
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
const groupResponse = {
  description: 'The group.',
  content: json(groupRecord, groupExample),
  headers: { etag: 'The version of the group, for `If-Match`.' },
}
