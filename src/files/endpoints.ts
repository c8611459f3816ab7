import { type TSchema, Type } from '@sinclair/typebox'
import {
  type CallerContext,
  type Endpoint,
  endpoint,
  json,
  jsonBody,
  type ResponseSettings,
} from '#api/endpoint.ts'
import { ifMatchHeader } from '#api/shapes.ts'
import { withCurrentTag } from '#http/precondition.ts'
import { entityTag, readIfMatch } from '#lib/entity-tag.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { NodeView } from './files.ts'
import {
  destinationErrors,
  fileExample,
  fileNotFound,
  fileRecord,
  folderExample,
  folderNotFound,
  folderRecord,
  folderWithPath,
  invalidName,
  type NodeRecord,
  nodeDeleted,
  notFileEditor,
  notFolderEditor,
  renderFolder,
  renderWithTag,
  tooManyFiles,
  versionTag,
} from './record.ts'
import {
  copy,
  fileChange,
  folderChange,
  move,
  newFolder,
  type ParsedChange,
  parseCopy,
  parseFileChange,
  parseFolderChange,
  parseMove,
  parseNewFolder,
  parseRestore,
  restore,
} from './schema.ts'
import { type NodeKind, parseNodeId } from './tree/checks.ts'
import type { Files } from './tree.ts'

/** Files and folders without their content, listings and shares. */
export function nodeEndpoints({ files }: { files: Files }): Endpoint[] {
  return [...fileEndpoints(files), ...folderEndpoints(files)]
}

function fileEndpoints(files: Files): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/files/:id',
      permission: 'can_access_api',
      tag: 'Files',
      summary: 'Retrieve a file',
      params: fileId,
      responses: { 200: fileResponse('The file.') },
      errors: { not_found: fileNotFound },
      handle: async ({ params, context, set }) =>
        renderWithTag(await files.find(context.principal, parseNodeId('file', params.id)), set),
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
      example: { folder_id: fileExample.folder_id },
      parse: parseMove,
      unprocessable: ['"folder_id" is required.', tooManyFiles],
    }),
    endpoint({
      method: 'POST',
      path: '/v1/files/:id/copy',
      permission: 'can_access_api',
      tag: 'Files',
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
      async handle({ params, body, context: { principal }, set }) {
        const { id } = await files.find(principal, parseNodeId('file', params.id))
        return renderWithTag(await files.copy(principal, id, parseCopy(body)), set)
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/v1/files/:id',
      permission: 'can_access_api',
      tag: 'Files',
      summary: 'Delete a file',
      description: 'Moves the file to the trash of its owner, or deletes it permanently.',
      params: fileId,
      query: Type.Object(
        {
          permanent: Type.Boolean({
            description: 'Deletes it permanently, even from the trash. Requires the owner.',
            default: false,
          }),
        },
        { additionalProperties: false },
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
        precondition_failed: staleVersion,
      },
      async handle({ params, query, context: { principal }, request, set }) {
        const node = { kind: 'file', id: parseNodeId('file', params.id) } as const
        const ifVersion = readIfMatch(request.headers.get('if-match'))
        await withVersionTag(files, { principal, node, set }, async () =>
          query.permanent
            ? await files.deleteFile(principal, { id: node.id, ifVersion })
            : await files.remove(principal, node, { isRecursive: true, ifVersion }),
        )
        return { id: node.id, object: 'file', deleted: true }
      },
    }),
    restoreEndpoint(files, 'file'),
  ]
}

function folderEndpoints(files: Files): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/folders',
      permission: 'can_access_api',
      tag: 'Files',
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
        renderWithTag(await files.createFolder(context.principal, body), set),
    }),
    endpoint({
      method: 'GET',
      path: '/v1/folders/:id',
      permission: 'can_access_api',
      tag: 'Files',
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
      async handle({ params, context, set }) {
        const id = parseNodeId('folder', params.id)
        const { folder, path } = await files.findFolder(context.principal, id)
        set.headers['etag'] = entityTag(versionTag(folder))
        return { ...renderFolder(folder), path }
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
      permission: 'can_access_api',
      tag: 'Files',
      summary: 'Delete a folder',
      description: 'Moves the folder with everything in it to the trash of its owner.',
      params: folderId,
      query: Type.Object(
        {
          recursive: Type.Boolean({ description: 'Required if it is not empty.', default: false }),
        },
        { additionalProperties: false },
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
        precondition_failed: staleVersion,
      },
      async handle({ params, query, context: { principal }, request, set }) {
        const node = { kind: 'folder', id: parseNodeId('folder', params.id) } as const
        const ifVersion = readIfMatch(request.headers.get('if-match'))
        const removed = await withVersionTag(files, { principal, node, set }, () =>
          files.remove(principal, node, { isRecursive: query.recursive, ifVersion }),
        )
        return { id: node.id, object: 'folder', deleted: true, ...removed }
      },
    }),
    restoreEndpoint(files, 'folder'),
  ]
}

/** An update or a move. */
function changeEndpoint(
  files: Files,
  {
    kind,
    schema,
    example,
    parse,
    unprocessable,
    ...declaration
  }: {
    kind: NodeKind
    method: 'PATCH' | 'POST'
    path: string
    summary: string
    description: string
    schema: TSchema
    example: unknown
    parse: (body: unknown) => ParsedChange
    unprocessable: readonly (string | { code: string; message: string })[]
  },
): Endpoint {
  const conflicts = kind === 'file' ? [] : [folderCycle]
  return endpoint({
    ...declaration,
    permission: 'can_access_api',
    tag: 'Files',
    params: kind === 'file' ? fileId : folderId,
    headers: ifMatchHeader,
    body: jsonBody(schema, { example, read: (body) => body }),
    responses: { 200: nodeResponse(kind, `The updated ${kind}.`) },
    errors: {
      not_found: kind === 'file' ? fileNotFound : folderNotFound,
      permission_denied: [kind === 'file' ? notFileEditor : notFolderEditor, moveOutOfShare],
      ...destinationErrors,
      conflict: [destinationErrors.conflict, ...conflicts],
      unprocessable,
      precondition_failed: staleVersion,
    },
    async handle({ params, body, context, request, set }): Promise<NodeRecord> {
      const { principal } = context as CallerContext
      const node = { kind, id: parseNodeId(kind, params.id) }
      // Errors of the body are reported only to principals who may see the node.
      await findNode(files, principal, node)
      const change = parse(body)
      const ifVersion = readIfMatch(request.headers.get('if-match'))
      const changed = await withVersionTag(files, { principal, node, set }, () =>
        files.change(principal, node, { ...change, ifVersion }),
      )
      return renderWithTag(changed, set)
    },
  })
}

function restoreEndpoint(files: Files, kind: NodeKind): Endpoint {
  const isFolder = kind === 'folder'
  return endpoint({
    method: 'POST',
    path: `/v1/${kind}s/:id/restore`,
    permission: 'can_access_api',
    tag: 'Files',
    summary: `Restore a ${kind}`,
    description: `Moves the ${kind} out of the trash${isFolder ? ', with everything that was in it,' : ''} to its previous folder or, if
that is gone, to the top level of its owner. A ${kind} outside the trash is not changed.`,
    params: isFolder ? folderId : fileId,
    body: jsonBody(restore, {
      example: { on_conflict: 'rename' },
      isOptional: true,
      read: parseRestore,
    }),
    responses: { 200: nodeResponse(kind, `The restored ${kind}.`) },
    errors: {
      not_found: isFolder ? folderNotFound : fileNotFound,
      conflict: destinationErrors.conflict,
      ...(isFolder ? { unprocessable: folderTooDeep } : {}),
      gone: { code: 'purged', message: `The retention time of this trashed ${kind} has passed.` },
    },
    async handle({ params, body, context: { principal }, set }) {
      const node = { kind, id: parseNodeId(kind, params.id) }
      const { onConflict = 'fail' } = body ?? {}
      return renderWithTag(await files.restore(principal, node, { onConflict }), set)
    },
  })
}

type NodeOf = { readonly kind: NodeKind; readonly id: string }

async function findNode(
  files: Files,
  principal: RequestPrincipal,
  { kind, id }: NodeOf,
): Promise<NodeView> {
  return kind === 'file'
    ? files.find(principal, id)
    : (await files.findFolder(principal, id)).folder
}

/** A refused `If-Match` gets the current version. */
function withVersionTag<T>(
  files: Files,
  { principal, node, set }: { principal: RequestPrincipal; node: NodeOf; set: ResponseSettings },
  change: () => Promise<T>,
): Promise<T> {
  return withCurrentTag(set, async () => versionTag(await findNode(files, principal, node)), change)
}

const fileId = { id: 'The id of the file.' }
const folderId = { id: 'The id of the folder.' }
const versionHeader = { etag: 'The version of the record.' }

function fileResponse(description: string) {
  return { description, content: json(fileRecord, fileExample), headers: versionHeader }
}

function folderResponse(description: string) {
  return { description, content: json(folderRecord, folderExample), headers: versionHeader }
}

function nodeResponse(kind: NodeKind, description: string) {
  return kind === 'file' ? fileResponse(description) : folderResponse(description)
}

const staleVersion = 'The current version is "3".'
const folderCycle = { code: 'folder_cycle', message: 'A folder cannot be moved into itself.' }
const folderTooDeep = {
  code: 'folder_too_deep',
  message: 'Folders may be nested at most 32 deep.',
}
const moveOutOfShare = {
  code: 'move_out_of_share',
  message: 'Only the owner may move this out of their files. Files can be copied.',
}
