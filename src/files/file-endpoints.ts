import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { ifMatchHeader } from '#api/shapes.ts'
import { readIfMatch } from '#lib/entity-tag.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import {
  changeEndpoint,
  fileId,
  fileResponse,
  restoreEndpoint,
  staleVersion,
} from './node-endpoints.ts'
import {
  common,
  destinationErrors,
  fileExample,
  fileNotFound,
  invalidName,
  nodeDeleted,
  notFileEditor,
  notFolderEditor,
  tooManyFiles,
  withVersionTag,
} from './record.ts'
import {
  copy,
  deletionQuery,
  fileChange,
  move,
  parseCopy,
  parseFileChange,
  parseMove,
  strict,
} from './schema.ts'
import { parseNodeId } from './tree/checks.ts'
import type { Files } from './tree.ts'

/** Files without their content, listings and shares. */
export function fileEndpoints({ files }: { files: Files }): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/files/:id',
      ...common,
      summary: 'Retrieve a file',
      params: fileId,
      responses: { 200: fileResponse('The file.') },
      errors: { not_found: fileNotFound },
      handle: async ({ params, context, set }) =>
        withVersionTag(await files.find(context.principal, parseNodeId('file', params.id)), set),
    }),
    changeEndpoint(files, {
      kind: 'file',
      method: 'PATCH',
      path: '/v1/files/:id',
      summary: 'Update a file',
      description: 'Renames or moves it, or changes its attributes, in one transaction.',
      schema: fileChange,
      example: { name: 'summary.pdf', attributes: { draft: null } },
      parse: parseFileChange,
      unprocessable: ['"attributes" must have at most 16 keys.', invalidName, tooManyFiles],
    }),
    changeEndpoint(files, {
      kind: 'file',
      method: 'POST',
      path: '/v1/files/:id/move',
      summary: 'Move a file',
      description:
        'To another folder or to the top level. In the folder of another user the file becomes theirs, which requires the role owner on the file.',
      schema: move,
      example: { folder_id: null },
      parse: parseMove,
      unprocessable: ['"folder_id" is required.', tooManyFiles],
    }),
    endpoint({
      method: 'POST',
      path: '/v1/files/:id/copy',
      ...common,
      summary: 'Copy a file',
      description: 'Requires read access to the file. The copy is in no collection.',
      params: fileId,
      body: jsonBody(copy, {
        example: { folder_id: null, on_conflict: 'rename' },
        read: (body) => body,
      }),
      responses: { 201: fileResponse('The copy.') },
      errors: {
        not_found: fileNotFound,
        permission_denied: notFolderEditor,
        ...destinationErrors,
        unprocessable: [invalidName, tooManyFiles],
      },
      async handle({ params, body, context, set }) {
        const { id } = await files.find(context.principal, parseNodeId('file', params.id))
        return withVersionTag(await files.copy(actingPrincipal(context), id, parseCopy(body)), set)
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/v1/files/:id',
      ...common,
      summary: 'Delete a file',
      description: 'Moves the file to the trash of its owner, or deletes it permanently.',
      params: fileId,
      query: deletionQuery(
        strict({
          permanent: Type.Boolean({
            description: 'Deletes it permanently, even from the trash. Requires the owner.',
            default: false,
          }),
        }),
      ),
      headers: ifMatchHeader,
      responses: {
        200: {
          description: 'The file is deleted.',
          content: json(nodeDeleted, { id: fileExample.id, object: 'file', deleted: true }),
        },
      },
      errors: {
        not_found: fileNotFound,
        permission_denied: notFileEditor,
        unprocessable: '"permanent" must be true or false.',
        removed_field: destinationErrors.removed_field,
        unknown_field: destinationErrors.unknown_field,
        precondition_failed: staleVersion,
      },
      async handle({ params, query, context, request }) {
        const principal = actingPrincipal(context)
        const node = { kind: 'file', id: parseNodeId('file', params.id) } as const
        const ifVersion = readIfMatch(request.headers.get('if-match'))
        await (query.permanent
          ? files.deleteFile(principal, { id: node.id, ifVersion })
          : files.remove(principal, node, { isRecursive: true, ifVersion }))
        return { id: node.id, object: 'file', deleted: true }
      },
    }),
    restoreEndpoint(files, 'file'),
  ]
}
