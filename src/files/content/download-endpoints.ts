import { Type } from '@sinclair/typebox'
import {
  bytes,
  type CallerContext,
  type Endpoint,
  type EndpointInput,
  endpoint,
} from '#api/endpoint.ts'
import { ifMatchHeader, ifNoneMatchHeader } from '#api/shapes.ts'
import type { Config } from '#config/schema.ts'
import { type FileRecord, fileExample, fileNotFound } from '#files/record.ts'
import { parseNodeId } from '#files/tree/checks.ts'
import type { Files } from '#files/tree.ts'
import { endWhenSent } from '#http/sent-body.ts'
import { entityTag, isKnown, readIfMatch } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { Storage } from '#storage/storage.ts'

export type DownloadEndpointsDeps = {
  files: Pick<Files, 'find'>
  storage: Pick<Storage, 'read'>
  config: Pick<Config, 'stream'>
}

/** The longest timeout of a connection in Bun. */
const timeoutSMax = 255
/** Bun checks its connections in intervals of this length, so a timeout may be that much too short. */
const timeoutResolutionS = 4

export function downloadEndpoints({ files, storage, config }: DownloadEndpointsDeps): Endpoint[] {
  const stallS = Math.ceil(config.stream.readerStallMs / 1000) + timeoutResolutionS
  const timeoutS = Math.min(stallS, timeoutSMax)

  async function respond({
    params,
    context: { principal, exchange },
    request,
    set,
    server,
  }: Pick<
    EndpointInput<typeof fileId, unknown, unknown, CallerContext>,
    'params' | 'context' | 'request' | 'set' | 'server'
  >): Promise<Response> {
    server?.timeout(request, timeoutS)
    const file = await files.find(principal, parseNodeId('file', params.id))
    if (!readIfMatch(request.headers.get('if-match'))(file.sha256)) {
      set.headers['etag'] = entityTag(file.sha256)
      throw new AppError('precondition_failed', contentChanged)
    }
    const range = rangeOf(request, file)
    if (range === 'unsatisfiable') {
      set.headers['content-range'] = `bytes */${file.bytes}`
      throw new AppError('range_not_satisfiable', `The file has ${file.bytes} bytes.`)
    }
    const headers = headersOf(file)
    if (isKnown(request.headers.get('if-none-match'), file.sha256)) {
      return new Response(null, { status: 304, headers })
    }
    const { start, end } = range ?? { start: 0, end: file.bytes }
    if (range !== null) headers.set('content-range', `bytes ${start}-${end - 1}/${file.bytes}`)
    headers.set('content-length', String(end - start))
    const isEmpty = request.method === 'HEAD' || end === start
    const body = isEmpty ? null : await storage.read(file.sha256, { start, end })
    if (body !== null && server !== null) endWhenSent(request, server, exchange)
    return new Response(body, { status: range === null ? 200 : 206, headers })
  }

  const common = {
    path: '/v1/files/:id/content',
    permission: 'can_access_api',
    tag: 'Files',
    params: fileId,
    headers: rangeHeaders(),
    errors: downloadErrors,
    handle: respond,
  } as const
  const notModified = { description: 'The content has not changed.', headers: contentHeaders }
  return [
    endpoint({
      ...common,
      method: 'GET',
      summary: 'Download a file',
      description:
        'The content type is that of the file. Several ranges, or an outdated `if-range`, are answered with the whole content.',
      responses: {
        200: { description: 'The whole content.', content: bytes('*/*'), headers: contentHeaders },
        206: {
          description: 'The range.',
          content: bytes('*/*'),
          headers: { ...contentHeaders, 'content-range': 'The range and the size of the content.' },
        },
        304: notModified,
      },
    }),
    endpoint({
      ...common,
      method: 'HEAD',
      summary: 'Retrieve the size and tag of the content of a file',
      responses: {
        200: {
          description: 'The headers of a download.',
          headers: { ...contentHeaders, 'content-length': 'The size.' },
        },
        206: { description: 'The headers of a range.', headers: contentHeaders },
        304: notModified,
      },
    }),
  ]
}

/** Bytes from `start` to before `end`. */
type ByteRange = { readonly start: number; readonly end: number }

function rangeOf(request: Request, { sha256, bytes }: FileRecord) {
  const ifRange = request.headers.get('if-range')
  if (ifRange !== null && ifRange.trim() !== entityTag(sha256)) return null
  return parseRange(request.headers.get('range'), bytes)
}

/**
 * A single range (RFC 9110, 14.1.2). Null: respond with everything, also for several ranges and unknown
 * forms.
 */
export function parseRange(
  header: string | null,
  bytes: number,
): ByteRange | 'unsatisfiable' | null {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '')
  const [, first = '', last = ''] = match ?? []
  if (first === '' && last === '') return null
  if (first === '') {
    const count = Math.min(Number(last), bytes)
    return count === 0 ? 'unsatisfiable' : { start: bytes - count, end: bytes }
  }
  const start = Number(first)
  const end = last === '' ? bytes : Math.min(Number(last) + 1, bytes)
  if (last !== '' && Number(last) < start) return null
  return start >= bytes ? 'unsatisfiable' : { start, end }
}

function headersOf(file: FileRecord): Headers {
  return new Headers({
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
    'content-disposition': contentDisposition(file.name),
    // Browsers must neither sniff nor run the content.
    'content-security-policy': "default-src 'none'; sandbox",
    'content-type': file.mime_type,
    'x-content-type-options': 'nosniff',
    etag: entityTag(file.sha256),
  })
}

/** RFC 6266: an ASCII name for old clients, and the exact one. */
function contentDisposition(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`
}

const fileId = { id: 'The id of the file.' }
const contentChanged = 'The content has changed.'
const contentHeaders = {
  etag: 'The SHA-256 of the content.',
  'content-disposition': 'The name of the file.',
  'accept-ranges': '`bytes`.',
}
const downloadErrors = {
  not_found: fileNotFound,
  precondition_failed: contentChanged,
  range_not_satisfiable: `The file has ${fileExample.bytes} bytes.`,
} as const

function rangeHeaders() {
  return Type.Object({
    range: Type.Optional(
      Type.String({
        description: 'One range of bytes: `bytes=0-1023`, `bytes=1024-`, `bytes=-512`.',
      }),
    ),
    'if-range': Type.Optional(
      Type.String({ description: 'The `ETag` of the content that the range applies to.' }),
    ),
    ...ifMatchHeader.properties,
    ...ifNoneMatchHeader.properties,
  })
}
