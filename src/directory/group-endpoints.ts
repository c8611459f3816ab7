import { type Endpoint, endpoint, jsonBody, type ResponseSettings } from '#api/endpoint.ts'
import { deletedResponse, ifMatchHeader, pageResponse, renderPage } from '#api/shapes.ts'
import { actorOf } from '#audit/audit.ts'
import { entityTag, readIfMatch } from '#lib/entity-tag.ts'
import { lastAdminError } from './change-store.ts'
import {
  changedGroup,
  groupChanged,
  groupExample,
  groupIdParam,
  groupPageQuery,
  groupRecord,
  groupResponse,
  nameIsFixed,
  newGroup,
  readChangedGroup,
  readGroupId,
  readNewGroup,
  renderGroup,
  unknownGroup,
} from './group-record.ts'
import { type Group, type Groups, groupErrors, tagOf } from './group-store.ts'

/** Groups and the permissions of their members. */
export function groupEndpoints(groups: Groups): Endpoint[] {
  const respond = (group: Group, set: ResponseSettings) => {
    set.headers['etag'] = entityTag(tagOf(group))
    return renderGroup(group)
  }
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
      responses: { 200: pageResponse('A page of groups.', groupRecord, groupExample) },
      errors: { unprocessable: '"limit" must be a whole number from 1 to 100.' },
      handle: async ({ query }) => renderPage(await groups.list(query), renderGroup),
    }),

    endpoint({
      method: 'GET',
      path: '/v1/groups/:id',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Retrieve a group',
      params: groupIdParam,
      responses: { 200: groupResponse },
      errors: { not_found: unknownGroup },
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
        not_found: unknownGroup,
        conflict: [groupErrors.locked, groupErrors.claimTaken, lastAdminError],
        precondition_failed: groupChanged,
      },
      async handle({ params: { id }, body: fields, context, request, set }) {
        const isExpected = readIfMatch(request.headers.get('if-match'))
        const change = { isExpected, fields }
        return respond(await groups.change(actorOf(context), readGroupId(id), change), set)
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
      responses: { 200: deletedResponse('The group is deleted.', 'group.deleted', 'editors') },
      errors: {
        not_found: unknownGroup,
        conflict: [groupErrors.locked, groupErrors.shipped, lastAdminError],
        precondition_failed: groupChanged,
      },
      async handle({ params: { id }, context, request }) {
        const isExpected = readIfMatch(request.headers.get('if-match'))
        await groups.remove(actorOf(context), readGroupId(id), isExpected)
        return { id, object: 'group.deleted', deleted: true }
      },
    }),
  ]
}
