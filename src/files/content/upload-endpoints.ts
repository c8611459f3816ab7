import { Type } from '@sinclair/typebox'
import { bytes, type Endpoint, endpoint, form, json, rawBody } from '#api/endpoint.ts'
import { ifMatchHeader } from '#api/shapes.ts'
import {
  common,
  destinationErrors,
  type FileRecord,
  fileExample,
  fileNotFound,
  fileRecord,
  folderNotFound,
  invalidName,
  notFileEditor,
  notFolderEditor,
  tooManyFiles,
} from '#files/record.ts'
import { parseNodeId } from '#files/tree/checks.ts'
import type { Files } from '#files/tree.ts'
import { readIfMatch, requireExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import { detectMimeType } from './mime-type.ts'
import type { Receiver } from './receive.ts'
import { parseUploadFields, uploadFields } from './upload-fields.ts'

export type UploadEndpointsDeps = {
  files: Pick<Files, 'create' | 'find' | 'replaceContent'>
  receive: Receiver['receive']
}

const raw = { what: 'file', formField: null, acceptsRaw: true } as const
const formOrRaw = { ...raw, formField: 'file' } as const

/** Uploads stream to the storage; no content is held in memory. */
export function uploadEndpoints({ files, receive }: UploadEndpointsDeps): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/files',
      ...common,
      summary: 'Upload a file',
      description: `As a form with the content in \`file\`, or as a raw body with the other fields in the query. The
content type is detected from the content. The file exists as soon as the response is sent; indexing in collections takes
longer, see \`retrieval_status\`. An aborted upload leaves nothing behind.`,
      // Documented here; form and query have the same fields, and the handler reads both.
      query: { schema: uploadFields, read: (params) => new Map(params) },
      body: rawBody({
        ...form(
          Type.Object({ file: Type.String({ format: 'binary' }), ...uploadFields.properties }),
        ),
        ...bytes('application/octet-stream'),
      }),
      responses: { 201: { description: 'The file.', content: json(fileRecord, fileExample) } },
      errors: {
        ...uploadErrors,
        invalid_request: 'The body is not a complete multipart form.',
        not_found: folderNotFound,
        permission_denied: notFolderEditor,
        conflict: destinationErrors.conflict,
        unprocessable: [
          'The form has no file.',
          invalidName,
          { code: 'collection_not_found', message: 'There is no collection "handbook".' },
          tooManyFiles,
        ],
        unknown_field: 'There is no field "colour".',
        removed_field: destinationErrors.removed_field,
      },
      async handle({ query, context, request }) {
        const principal = actingPrincipal(context)
        const upload = await receive(request, { ...formOrRaw, userId: principal.userId })
        const { name, ...fields } = parseUploadFields(upload.fields ?? query)
        const fileName = name ?? upload.filename
        if (fileName === null) {
          throw new AppError('unprocessable', 'The file needs a name.', { param: 'name' })
        }
        const { content } = upload
        const mimeType = await detectMimeType(content.head, fileName)
        return files.create(principal, { ...fields, name: fileName, content, mimeType })
      },
    }),

    endpoint({
      method: 'PUT',
      path: '/v1/files/:id/content',
      ...common,
      summary: 'Replace the content of a file',
      description:
        'With a raw body. Collections that have the file are updated. `if-match` takes the tag of the content, which is checked before and after the upload.',
      params: { id: 'The id of the file.' },
      headers: ifMatchHeader,
      body: rawBody(bytes('application/octet-stream')),
      responses: {
        200: { description: 'The updated file.', content: json(fileRecord, fileExample) },
      },
      errors: {
        ...uploadErrors,
        not_found: fileNotFound,
        permission_denied: notFileEditor,
        precondition_failed: contentChanged,
      },
      async handle({ params, context, request }) {
        const principal = actingPrincipal(context)
        const id = parseNodeId('file', params.id)
        const isExpected = readIfMatch(request.headers.get('if-match'))
        const check = ({ sha256 }: FileRecord) =>
          requireExpected(isExpected, sha256, contentChanged)
        // Before the upload, so that a refused one does not transfer the content.
        const current = await files.find(principal, id)
        check(current)
        const { content } = await receive(request, { ...raw, userId: principal.userId })
        const mimeType = await detectMimeType(content.head, current.name)
        return files.replaceContent(principal, id, { content, mimeType }, check)
      },
    }),
  ]
}

const contentChanged = 'The content has changed.'
export const uploadErrors = {
  request_too_large: {
    code: 'file_too_large',
    message: 'A file may have at most 5368709120 bytes.',
  },
  request_timeout: 'The request body did not come in time.',
  too_many_streams: 'Too many uploads are in progress.',
  service_unavailable: 'The content was not stored; send it again.',
  insufficient_storage: [
    'The storage is full.',
    {
      code: 'stored_bytes_exceeded',
      message:
        'The limit of 1000000000 bytes of stored files is reached; delete files, also from the trash.',
    },
  ],
} as const
