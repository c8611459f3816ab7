import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { readOwnFile } from '#lib/own-program.ts'

const script = 'text/javascript; charset=utf-8'
const styles = 'text/css; charset=utf-8'

/**
 * The files that the pages load: the bundles of the documentation packages, and our own scripts that
 * start them. Resolved when a page first loads the file, so an installation without them starts.
 */
const sources = {
  'swagger-ui.js': {
    type: script,
    path: () => import('swagger-ui-dist/swagger-ui-bundle.js', { with: { type: 'file' } }),
  },
  'swagger-ui.css': {
    type: styles,
    path: () => import('swagger-ui-dist/swagger-ui.css', { with: { type: 'file' } }),
  },
  // The Fastify plugin ships the browser bundle of @scalar/api-reference without its 286 packages.
  // Since 1.62.1 it inlines the bundle into its own code, so 1.60.0 is the last usable version.
  'scalar.js': {
    type: script,
    path: () =>
      import('../../node_modules/@scalar/fastify-api-reference/dist/js/standalone.js', {
        with: { type: 'file' },
      }),
  },
  'open-document.js': {
    type: script,
    path: () => import('./pages/open-document.js', { with: { type: 'file' } }),
  },
  'start-swagger.js': {
    type: script,
    path: () => import('./pages/start-swagger.js', { with: { type: 'file' } }),
  },
  'start-scalar.js': {
    type: script,
    path: () => import('./pages/start-scalar.js', { with: { type: 'file' } }),
  },
}

export type AssetName = keyof typeof sources

export type Assets = {
  /** `/docs/assets/<hash>/<name>`: the path changes with the content. */
  pathOf(name: AssetName): Promise<string>
  /** Null if there is no such file, or its hash is another one. */
  find(hash: string, name: string): Promise<StaticFile | null>
}

export function createAssets(): Assets {
  const files = new Map<string, () => Promise<StaticFile>>(
    Object.entries(sources).map(([name, { type, path }]) => [
      name,
      lazy(() => loadStaticFile(type, async () => readOwnFile((await path()).default))),
    ]),
  )
  const open = async (name: string) => (await files.get(name)?.()) ?? null
  return {
    async pathOf(name) {
      const file = await open(name)
      return `/docs/assets/${file?.hash}/${name}`
    },
    async find(hash, name) {
      const file = await open(name)
      return file?.hash === hash ? file : null
    },
  }
}

/** A file that never changes while the process runs. It is compressed once. */
type StaticFile = {
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
