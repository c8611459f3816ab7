import { Type } from '@sinclair/typebox'
import { bytes, type Endpoint, endpoint, form, json, rawBody } from '#api/endpoint.ts'
import { ifMatchHeader } from '#api/shapes.ts'
import type { Config } from '#config/schema.ts'
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
import { readLongBody } from '#http/long-body.ts'
import { readMultipart } from '#http/multipart.ts'
import { readIfMatch, requireExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import type { CurrentSettings } from '#settings/schema.ts'
import type { Storage, StoredContent } from '#storage/storage.ts'
import { detectMimeType } from './mime-type.ts'
import { parseUploadFields, uploadFields } from './upload-fields.ts'

export type UploadEndpointsDeps = {
  files: Pick<Files, 'create' | 'find' | 'replaceContent'>
  storage: Pick<Storage, 'put'>
  settings: CurrentSettings
  config: Pick<Config, 'files'>
  now: () => Date
}

/** Uploads stream to the storage; no content is held in memory. */
export function uploadEndpoints({ files, now, ...deps }: UploadEndpointsDeps): Endpoint[] {
  const receive = createReceiver(deps)
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
        const upload = await receive(request, { acceptsForm: true, userId: principal.userId })
        const { name, ...fields } = parseUploadFields(upload.fields ?? query, now())
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
        const { content } = await receive(request, { acceptsForm: false, userId: principal.userId })
        const mimeType = await detectMimeType(content.head, current.name)
        return files.replaceContent(principal, id, { content, mimeType }, check)
      },
    }),
  ]
}

type Upload = {
  /** Null for a raw body. */
  readonly fields: ReadonlyMap<string, string> | null
  readonly content: StoredContent
  readonly filename: string | null
}

/** Users whose stalled uploads are needed to take all slots. */
const uploadUsersMin = 4
const multipartOverheadBytesMax = 1_048_576
const formLimits = { fieldsMax: 16, fieldBytesMax: 65_536, filesMax: 1 }

/** Limits the number of concurrent uploads, their size and their duration. */
function createReceiver({
  storage,
  settings,
  config: { files: limits },
}: Omit<UploadEndpointsDeps, 'files' | 'now'>) {
  const deadlines = { gapMs: limits.uploadGapMs, totalMs: limits.uploadMs }
  let running = 0
  const runningByUser = new Map<string, number>()
  const uploadsPerUserMax = Math.ceil(limits.uploadsMax / uploadUsersMin)

  async function receiveForm(request: Request, bytesMax: number): Promise<Upload> {
    const { fields, files } = await readMultipart(
      request,
      { ...formLimits, ...deadlines },
      async ({ field }, content) => {
        if (field === 'file') return storage.put(content, { bytesMax })
        throw new AppError('unknown_field', `There is no file field "${field}"; send "file".`, {
          param: field,
        })
      },
    )
    const [file] = files
    if (file === undefined) {
      throw new AppError('unprocessable', 'The form has no file.', { param: 'file' })
    }
    return { fields, content: file.taken, filename: file.part.filename }
  }

  async function receiveRaw(request: Request, bytesMax: number): Promise<Upload> {
    const content = await storage.put(readLongBody(request, deadlines), { bytesMax })
    return { fields: null, content, filename: null }
  }

  return async (
    request: Request,
    { acceptsForm, userId }: { acceptsForm: boolean; userId: string },
  ): Promise<Upload> => {
    const ofUser = runningByUser.get(userId) ?? 0
    if (running >= limits.uploadsMax || ofUser >= uploadsPerUserMax) {
      throw new AppError('too_many_streams', 'Too many uploads are in progress.', {
        retryAfterS: 1,
      })
    }
    const bytesMax = settings.current().files.max_bytes
    const isForm = /^multipart\//i.test(request.headers.get('content-type') ?? '')
    const contentLength = Number(request.headers.get('content-length') ?? 0)
    if (contentLength > bytesMax + (isForm ? multipartOverheadBytesMax : 0)) {
      throw new AppError('request_too_large', `A file may have at most ${bytesMax} bytes.`, {
        code: 'file_too_large',
      })
    }
    running++
    runningByUser.set(userId, ofUser + 1)
    try {
      return await (isForm && acceptsForm
        ? receiveForm(request, bytesMax)
        : receiveRaw(request, bytesMax))
    } finally {
      running--
      const left = (runningByUser.get(userId) ?? 1) - 1
      if (left > 0) runningByUser.set(userId, left)
      else runningByUser.delete(userId)
    }
  }
}

const contentChanged = 'The content has changed.'
const uploadErrors = {
  request_too_large: {
    code: 'file_too_large',
    message: 'A file may have at most 5368709120 bytes.',
  },
  request_timeout: 'The request body did not come in time.',
  too_many_streams: 'Too many uploads are in progress.',
  service_unavailable: 'The content was not stored; send it again.',
  insufficient_storage: 'The storage is full.',
} as const
