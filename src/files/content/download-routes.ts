import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import type { FileNode } from '#files/files.ts'
import { nodeId } from '#files/node-routes.ts'
import { entityTag, isKnown, readIfMatch } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Storage } from '#storage/storage.ts'
import { contentOperations } from './operations.ts'
import { type ByteRange, readRange } from './range.ts'

export type DownloadRoutesDeps = {
  auth: Auth
  files: { find(caller: RequestPrincipal, id: string): Promise<FileNode> }
  storage: Pick<Storage, 'read'>
  config: Pick<Config, 'stream'>
}

/** How contents go out: whole or in part, never shown in place of a page of ours. */
export function downloadRoutes(deps: DownloadRoutesDeps) {
  const { auth, files, config } = deps
  const stallS = Math.min(Math.ceil(config.stream.readerStallMs / 1000) + clockTurnS, stallSMax)
  type Asked = {
    principal: RequestPrincipal
    params: { id: string }
    request: Request
    set: { headers: Record<string, unknown> }
  }
  const answer = async ({ principal, params, request, set }: Asked) => {
    const file = await files.find(principal, nodeId('file', params))
    if (!readIfMatch(request.headers.get('if-match'))(file.sha256)) {
      set.headers['etag'] = entityTag(file.sha256)
      throw new AppError('precondition_failed', 'The content has changed since.')
    }
    const range = rangeOf(request, file)
    if (range !== 'unsatisfiable') return respond(file, { request, range }, deps)
    set.headers['content-range'] = `bytes */${file.bytes}`
    throw new AppError('range_not_satisfiable', `The file has ${file.bytes} bytes.`)
  }
  return new Elysia({ name: 'downloads', prefix: '/v1/files' })
    .use(guard(auth))
    .get(
      '/:id/content',
      ({ server, ...asked }) => {
        server?.timeout(asked.request, stallS)
        return answer(asked)
      },
      { requires: 'can_access_api', detail: contentOperations.download },
    )
    .head('/:id/content', answer, { requires: 'can_access_api', detail: contentOperations.head })
}

/** Bun knows no longer time. */
const stallSMax = 255
/** Bun looks at its connections every so often only; a time of one turn may be over at once. */
const clockTurnS = 4

function rangeOf(request: Request, file: FileNode): ReturnType<typeof readRange> {
  const ifRange = request.headers.get('if-range')
  // A range of another content than the one that the client has begun with is of no use to it.
  if (ifRange !== null && ifRange.trim() !== entityTag(file.sha256)) return null
  return readRange(request.headers.get('range'), file.bytes)
}

async function respond(
  file: FileNode,
  { request, range }: { request: Request; range: ByteRange | null },
  { storage }: Pick<DownloadRoutesDeps, 'storage'>,
): Promise<Response> {
  const headers = headersOf(file)
  // A content never changes, so its hash is the strongest tag that there is.
  if (isKnown(request.headers.get('if-none-match'), file.sha256)) {
    return new Response(null, { status: 304, headers })
  }
  const part = range ?? { start: 0, end: file.bytes }
  if (range !== null) headers.set('content-range', `bytes ${spell(part)}/${file.bytes}`)
  headers.set('content-length', String(part.end - part.start))
  const isEmpty = request.method === 'HEAD' || part.end === part.start
  const body = isEmpty ? null : await storage.read(file.sha256, part)
  return new Response(body, { status: range === null ? 200 : 206, headers })
}

function headersOf(file: FileNode): Headers {
  return new Headers({
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
    'content-disposition': `attachment; ${spellName(file.name)}`,
    // Whatever a file holds, a browser shall neither guess what it is nor run it.
    'content-security-policy': "default-src 'none'; sandbox",
    'content-type': file.mimeType,
    'x-content-type-options': 'nosniff',
    etag: entityTag(file.sha256),
  })
}

/** RFC 6266: a plain name for old clients, the real one for the rest. */
function spellName(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `filename="${plain}"; filename*=UTF-8''${encoded}`
}

/** As the header counts: the last byte is part of it. */
function spell({ start, end }: ByteRange): string {
  return `${start}-${end - 1}`
}
