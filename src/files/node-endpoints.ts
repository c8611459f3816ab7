import type { TSchema } from '@sinclair/typebox'
import { type CallerContext, type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { ifMatchHeader } from '#api/shapes.ts'
import { readIfMatch } from '#lib/entity-tag.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import {
  common,
  destinationErrors,
  fileExample,
  fileNotFound,
  fileRecord,
  folderExample,
  folderNotFound,
  folderRecord,
  type NodeRecord,
  notFileEditor,
  notFolderEditor,
  withVersionTag,
} from './record.ts'
import { type ParsedChange, parseRestore, restore } from './schema.ts'
import { type NodeKind, parseNodeId } from './tree/checks.ts'
import type { Files } from './tree.ts'

/** An update or a move. */
export function changeEndpoint(
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
    ...common,
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
      await (kind === 'file' ? files.find : files.findFolder)(principal, node.id)
      const change = parse(body)
      const ifVersion = readIfMatch(request.headers.get('if-match'))
      return withVersionTag(
        await files.change(actingPrincipal(context as CallerContext), node, {
          ...change,
          ifVersion,
        }),
        set,
      )
    },
  })
}

export function restoreEndpoint(files: Files, kind: NodeKind): Endpoint {
  const isFolder = kind === 'folder'
  return endpoint({
    method: 'POST',
    path: `/v1/${kind}s/:id/restore`,
    ...common,
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
    async handle({ params, body, context, set }) {
      const node = { kind, id: parseNodeId(kind, params.id) }
      const { onConflict = 'fail' } = body ?? {}
      return withVersionTag(
        await files.restore(actingPrincipal(context), node, { onConflict }),
        set,
      )
    },
  })
}

export const fileId = { id: 'The id of the file.' }
export const folderId = { id: 'The id of the folder.' }
export const versionHeader = { etag: 'The version of the record.' }

export function fileResponse(description: string) {
  return { description, content: json(fileRecord, fileExample), headers: versionHeader }
}

export function folderResponse(description: string) {
  return { description, content: json(folderRecord, folderExample), headers: versionHeader }
}

function nodeResponse(kind: NodeKind, description: string) {
  return kind === 'file' ? fileResponse(description) : folderResponse(description)
}

export const staleVersion = 'The current version is "3".'
const folderCycle = { code: 'folder_cycle', message: 'A folder cannot be moved into itself.' }
export const folderTooDeep = {
  code: 'folder_too_deep',
  message: 'Folders may be nested at most 32 deep.',
}
const moveOutOfShare = {
  code: 'move_out_of_share',
  message: 'Only the owner may move this out of their files. Files can be copied.',
}
