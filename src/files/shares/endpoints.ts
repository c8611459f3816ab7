import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { deletedResponse, idExample } from '#api/shapes.ts'
import { fileNotFound, folderNotFound, ownerId } from '#files/record.ts'
import { parseNodeId } from '#files/tree/checks.ts'
import { AppError } from '#lib/errors.ts'
import { actingPrincipal, type RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { CurrentSettings } from '#settings/schema.ts'
import { accessRecord, granteeList, shareExample, shareList, shareRecord } from './record.ts'
import {
  accessQuery,
  granteesQuery,
  parseGrant,
  parseRoleChange,
  roleChange,
  shareBody,
} from './schema.ts'
import type { SharedResource, Shares } from './shares.ts'

/** Shares of files and folders, and the people picker. */
export function fileShareEndpoints(
  deps: { shares: Shares } & { settings: CurrentSettings },
): Endpoint[] {
  return [
    ...shareEndpoints(deps, {
      resource: 'files',
      find: async (_, id) => ({ type: 'file', id: parseNodeId('file', id) }),
    }),
    ...shareEndpoints(deps, {
      resource: 'folders',
      find: async (_, id) => ({ type: 'folder', id: parseNodeId('folder', id) }),
    }),
    granteesEndpoint(deps),
  ]
}

/**
 * The shares of one type of resource, under `/v1/<resource>/:id/…`. `find` throws `not_found` for a
 * resource that does not exist for the principal.
 */
export function shareEndpoints(
  { shares }: { shares: Shares },
  {
    resource,
    find,
  }: {
    resource: keyof typeof resources
    find: (principal: RequestPrincipal, id: string) => Promise<SharedResource>
  },
): Endpoint[] {
  const { noun, idDescription, notFound } = resources[resource]
  const notManager = `This requires the role manager on the ${noun}.`
  const idParam = { id: idDescription }
  const shareParams = { id: idDescription, share_id: 'The id of the share.' }
  const common = { permission: 'can_access_api', tag: 'Sharing' } as const
  return [
    endpoint({
      ...common,
      method: 'GET',
      path: `/v1/${resource}/:id/shares`,
      summary: `List the shares of a ${noun}`,
      description:
        'Includes shares of the folders above it. Callers who may not share it see the shares that give them access.',
      params: idParam,
      responses: {
        200: {
          description: 'All shares.',
          content: json(shareList, { object: 'list', data: [shareExample] }),
        },
      },
      errors: { not_found: notFound },
      async handle({ params, context: { principal } }) {
        return {
          object: 'list',
          data: await shares.list(principal, await find(principal, params.id)),
        }
      },
    }),
    endpoint({
      ...common,
      method: 'POST',
      path: `/v1/${resource}/:id/shares`,
      summary: `Share a ${noun}`,
      description: `With a user, a group or everyone. A grantee has one role on a resource: sharing again changes the
role. A user who has never signed in is named by the \`subject\` of their tokens. Shares of a folder include its content. A
resource has at most 1,000 shares.`,
      params: idParam,
      body: jsonBody(shareBody, {
        example: { principal: { type: 'group', id: 'users' }, role: 'viewer' },
        read: (body) => body,
      }),
      responses: {
        200: { description: 'The role was changed.', content: json(shareRecord, shareExample) },
        201: { description: 'The new share.', content: json(shareRecord, shareExample) },
      },
      errors: {
        not_found: notFound,
        permission_denied: notManager,
        unprocessable: [
          '"principal.id" is required.',
          { code: 'principal_not_found', message: 'There is no known user with this id.' },
          { code: 'principal_is_owner', message: 'The owner already has all rights.' },
          { code: 'too_many_shares', message: 'The limit of 1000 shares is reached.' },
        ],
        unknown_field: unknownField,
      },
      async handle({ params, body, context, set }) {
        const { principal } = context
        const shared = await find(principal, params.id)
        // Errors of the body are reported only to principals who may see the resource.
        await shares.list(principal, shared)
        const acting = actingPrincipal(context)
        const { share, isNew } = await shares.add(acting, shared, parseGrant(body))
        set.status = isNew ? 201 : 200
        return share
      },
    }),
    endpoint({
      ...common,
      method: 'PATCH',
      path: `/v1/${resource}/:id/shares/:share_id`,
      summary: `Change the role of a share of a ${noun}`,
      params: shareParams,
      body: jsonBody(roleChange, { example: { role: 'editor' }, read: (body) => body }),
      responses: {
        200: {
          description: 'The share.',
          content: json(shareRecord, { ...shareExample, role: 'editor' }),
        },
      },
      errors: {
        not_found: [notFound, shareNotFound],
        permission_denied: notManager,
        conflict: inherited,
        unprocessable: '"role" must be "viewer" or "editor" or "manager".',
        unknown_field: unknownField,
      },
      async handle({ params, body, context }) {
        const { principal } = context
        const shared = await find(principal, params.id)
        await shares.list(principal, shared)
        const role = parseRoleChange(body)
        return shares.change(actingPrincipal(context), shared, parseShareId(params.share_id), role)
      },
    }),
    endpoint({
      ...common,
      method: 'DELETE',
      path: `/v1/${resource}/:id/shares/:share_id`,
      summary: `Delete a share of a ${noun}`,
      description: 'Users may also delete their own access.',
      params: shareParams,
      responses: { 200: deletedResponse('The share is deleted.', 'share', idExample) },
      errors: {
        not_found: [notFound, shareNotFound],
        permission_denied: notManager,
        conflict: inherited,
      },
      async handle({ params: { id, share_id }, context }) {
        const shared = await find(context.principal, id)
        await shares.remove(actingPrincipal(context), shared, parseShareId(share_id))
        return { id: share_id, object: 'share', deleted: true }
      },
    }),
    endpoint({
      ...common,
      method: 'GET',
      path: `/v1/${resource}/:id/access`,
      summary: `Explain the access of a user to a ${noun}`,
      description: 'By default your own access. Other users require the role manager.',
      params: idParam,
      query: accessQuery,
      responses: {
        200: {
          description: 'The role and its reasons.',
          content: json(accessRecord, {
            object: 'access',
            user: { id: ownerId, name: 'ann' },
            role: 'owner',
            via: [{ type: 'owner' }, { type: 'share', share: shareExample }],
          }),
        },
      },
      errors: {
        not_found: notFound,
        permission_denied: notManager,
        unprocessable: '"user_id" must be the id of a user.',
      },
      async handle({ params, query, context: { principal } }) {
        const shared = await find(principal, params.id)
        const userId = query.user_id?.toLowerCase() ?? principal.userId
        return shares.access(principal, shared, userId)
      },
    }),
  ]
}

function granteesEndpoint({
  shares,
  settings,
}: {
  shares: Shares
  settings: CurrentSettings
}): Endpoint {
  return endpoint({
    method: 'GET',
    path: '/v1/principals',
    permission: 'can_access_api',
    tag: 'Sharing',
    summary: 'Search users and groups to share with',
    description: 'Returns the first 20. Administrators can disable it.',
    query: granteesQuery,
    responses: {
      200: {
        description: 'The users and groups.',
        content: json(granteeList, {
          object: 'list',
          data: [{ type: 'user', id: ownerId, name: 'ann' }, shareExample.principal],
        }),
      },
    },
    errors: { permission_denied: peoplePickerOff, unprocessable: '"q" is required.' },
    async handle({ query }) {
      if (!settings.current().files.people_picker) {
        const { code, message } = peoplePickerOff
        throw new AppError('permission_denied', message, { code })
      }
      return { object: 'list', data: await shares.findGrantees(query) }
    },
  })
}

function parseShareId(id: string): string {
  if (isUuid(id)) return id.toLowerCase()
  throw new AppError('not_found', `There is no share with the id "${id}".`, { param: 'share_id' })
}

const resources = {
  files: { noun: 'file', idDescription: 'The id of the file.', notFound: fileNotFound },
  folders: { noun: 'folder', idDescription: 'The id of the folder.', notFound: folderNotFound },
  collections: {
    noun: 'collection',
    idDescription: 'The name or the id of the collection.',
    notFound: 'There is no collection "handbook".',
  },
} as const

const shareNotFound = `There is no share with the id "${idExample}".`
const unknownField = '"colour" is not a known field.'
const inherited = {
  code: 'inherited',
  message: 'This share belongs to a folder above; change it there.',
}
const peoplePickerOff = {
  code: 'people_picker_off',
  message: 'The search for users and groups is disabled; enter their ids.',
}
