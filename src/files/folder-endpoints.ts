import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { ifMatchHeader } from '#api/shapes.ts'
import { readIfMatch } from '#lib/entity-tag.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import {
  changeEndpoint,
  folderId,
  folderResponse,
  folderTooDeep,
  restoreEndpoint,
  staleVersion,
  versionHeader,
} from './node-endpoints.ts'
import {
  common,
  destinationErrors,
  folderExample,
  folderNotFound,
  folderWithPath,
  invalidName,
  nodeDeleted,
  notFolderEditor,
  tooManyFiles,
  withVersionTag,
} from './record.ts'
import {
  deletionQuery,
  folderChange,
  move,
  newFolder,
  parseFolderChange,
  parseMove,
  parseNewFolder,
  strict,
} from './schema.ts'
import { parseNodeId } from './tree/checks.ts'
import type { Files } from './tree.ts'

export function folderEndpoints({ files }: { files: Files }): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/folders',
      ...common,
      summary: 'Create a folder',
      description: 'In the folder of another user it is theirs. Folders may be nested 32 deep.',
      body: jsonBody(newFolder, {
        example: { name: 'Reports', folder_id: null },
        read: parseNewFolder,
      }),
      responses: { 201: folderResponse('The folder.') },
      errors: {
        not_found: folderNotFound,
        permission_denied: notFolderEditor,
        ...destinationErrors,
        unprocessable: ['"name" is required.', invalidName, folderTooDeep, tooManyFiles],
      },
      handle: async ({ body, context, set }) =>
        withVersionTag(await files.createFolder(actingPrincipal(context), body), set),
    }),
    endpoint({
      method: 'GET',
      path: '/v1/folders/:id',
      ...common,
      summary: 'Retrieve a folder',
      description: 'With the folders above it.',
      params: folderId,
      responses: {
        200: {
          description: 'The folder.',
          content: json(folderWithPath, { ...folderExample, path: [] }),
          headers: versionHeader,
        },
      },
      errors: { not_found: folderNotFound },
      async handle({ params, context: { principal }, set }) {
        const id = parseNodeId('folder', params.id)
        return withVersionTag(await files.findFolder(principal, id), set)
      },
    }),
    changeEndpoint(files, {
      kind: 'folder',
      method: 'PATCH',
      path: '/v1/folders/:id',
      summary: 'Update a folder',
      description: 'Renames it, or moves it with everything in it.',
      schema: folderChange,
      example: { name: 'Reports of 2026' },
      parse: parseFolderChange,
      unprocessable: ['"name" must be a string.', invalidName, folderTooDeep, tooManyFiles],
    }),
    changeEndpoint(files, {
      kind: 'folder',
      method: 'POST',
      path: '/v1/folders/:id/move',
      summary: 'Move a folder',
      description:
        'To another folder or to the top level, with everything in it. In the folder of another user all of it becomes theirs, which requires the role owner on the folder.',
      schema: move,
      example: { folder_id: null },
      parse: parseMove,
      unprocessable: ['"folder_id" is required.', folderTooDeep, tooManyFiles],
    }),
    endpoint({
      method: 'DELETE',
      path: '/v1/folders/:id',
      ...common,
      summary: 'Delete a folder',
      description: 'Moves the folder with everything in it to the trash of its owner.',
      params: folderId,
      query: deletionQuery(
        strict({
          recursive: Type.Boolean({ description: 'Required if it is not empty.', default: false }),
        }),
      ),
      headers: ifMatchHeader,
      responses: {
        200: {
          description: 'The folder is deleted.',
          content: json(nodeDeleted, {
            id: folderExample.id,
            object: 'folder',
            deleted: true,
            files: 3,
            folders: 2,
          }),
        },
      },
      errors: {
        not_found: folderNotFound,
        permission_denied: notFolderEditor,
        conflict: {
          code: 'folder_not_empty',
          message: 'The folder is not empty; delete it with recursive=true.',
        },
        unprocessable: '"recursive" must be true or false.',
        removed_field: destinationErrors.removed_field,
        unknown_field: destinationErrors.unknown_field,
        precondition_failed: staleVersion,
      },
      async handle({ params, query, context, request }) {
        const principal = actingPrincipal(context)
        const node = { kind: 'folder', id: parseNodeId('folder', params.id) } as const
        const ifVersion = readIfMatch(request.headers.get('if-match'))
        const options = { isRecursive: query.recursive, ifVersion }
        const removed = await files.remove(principal, node, options)
        return { id: node.id, object: 'folder', deleted: true, ...removed }
      },
    }),
    restoreEndpoint(files, 'folder'),
  ]
}
