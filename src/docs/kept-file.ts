import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** Bytes that never change while the process runs, and are compressed once. */
export type KeptFile = {
  readonly type: string
  /** Tells the bytes from any others; good for a path and for an entity tag. */
  readonly hash: string
  readonly gzipped: Uint8Array<ArrayBuffer>
  readonly read: () => Promise<Uint8Array<ArrayBuffer>>
}

const compress = promisify(gzip)
const hashChars = 16

/** Hashes and compresses on other threads, because some files have megabytes. */
export async function keepFile(
  type: string,
  read: () => Promise<Uint8Array<ArrayBuffer>>,
): Promise<KeptFile> {
  const bytes = await read()
  const [digest, gzipped] = await Promise.all([
    crypto.subtle.digest('SHA-256', bytes),
    compress(bytes),
  ])
  const hash = Buffer.from(digest).toString('hex').slice(0, hashChars)
  return { type, hash, gzipped: new Uint8Array(gzipped), read }
}

/** The whole file, compressed for a client that takes it so. */
export async function answerWith(
  file: KeptFile,
  request: Request,
  headers: Record<string, string>,
): Promise<Response> {
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(
    request.headers.get('accept-encoding') ?? '',
  )
  return new Response(takesGzip ? file.gzipped : await file.read(), {
    headers: {
      ...headers,
      'content-type': file.type,
      ...(takesGzip ? { 'content-encoding': 'gzip' } : {}),
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    },
  })
}

/** Makes something when it is first asked for, and again only where that failed. */
export function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    if (made === undefined) {
      made = make()
      made.catch(() => {
        made = undefined
      })
    }
    return made
  }
}
