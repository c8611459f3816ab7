import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** A file that never changes while the process runs. It is compressed once. */
export type StaticFile = {
  readonly type: string
  /** Of the content; part of its path and its entity tag. */
  readonly hash: string
  readonly gzipped: Uint8Array<ArrayBuffer>
  readonly read: () => Promise<Uint8Array<ArrayBuffer>>
}

const compress = promisify(gzip)
const hashChars = 16

/** Hashes and compresses on other threads, because some files have megabytes. */
export async function loadStaticFile(
  type: string,
  read: () => Promise<Uint8Array<ArrayBuffer>>,
): Promise<StaticFile> {
  const bytes = await read()
  const [digest, gzipped] = await Promise.all([
    crypto.subtle.digest('SHA-256', bytes),
    compress(bytes),
  ])
  const hash = Buffer.from(digest).toString('hex').slice(0, hashChars)
  return { type, hash, gzipped: new Uint8Array(gzipped), read }
}

/** The whole file, compressed for clients that accept gzip. */
export async function respondWithFile(
  file: StaticFile,
  request: Request,
  headers: Record<string, string>,
): Promise<Response> {
  const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(
    request.headers.get('accept-encoding') ?? '',
  )
  return new Response(acceptsGzip ? file.gzipped : await file.read(), {
    headers: {
      ...headers,
      'content-type': file.type,
      ...(acceptsGzip ? { 'content-encoding': 'gzip' } : {}),
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    },
  })
}

/** Creates a value on first use; a failed creation is repeated on the next use. */
export function lazy<T>(create: () => Promise<T>): () => Promise<T> {
  let created: Promise<T> | undefined
  return () => {
    if (created === undefined) {
      created = create()
      created.catch(() => {
        created = undefined
      })
    }
    return created
  }
}
