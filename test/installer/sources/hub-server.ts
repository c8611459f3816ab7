import { createHash } from 'node:crypto'

export type HubOptions = {
  files: Readonly<Record<string, { content: Uint8Array; isLarge?: boolean }>>
  /** The token that every request requires. */
  token?: string
  gated?: string | false
  /** Whether the tree listing exists; mirrors may not have it. */
  hasTree?: boolean
  entriesPerPage?: number
  /** The host of large files. */
  storeUrl?: string
}

type HubQuestion = { readonly method: string; readonly path: string; readonly token: string }

/** A model hub with one repository, `org/model`, whose branch `main` is the commit `commit`. */
export type HubServer = {
  readonly url: string
  readonly questions: readonly HubQuestion[]
  stop(): Promise<void>
}

export const commit = '0123456789abcdef0123456789abcdef01234567'

export function startHub(options: HubOptions): HubServer {
  const questions: HubQuestion[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const url = new URL(request.url)
      const token = request.headers.get('authorization') ?? ''
      questions.push({ method: request.method, path: url.pathname, token })
      if (options.token !== undefined && token !== `Bearer ${options.token}`) {
        return Response.json({ error: 'Invalid username or password.' }, { status: 401 })
      }
      return answerHub(options, url)
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, questions, stop: () => server.stop(true) }
}

function answerHub(options: HubOptions, url: URL): Response {
  const path = decodeURIComponent(url.pathname)
  if (path === '/api/models/org/model/revision/main' || path.endsWith(`/revision/${commit}`)) {
    const siblings = Object.keys(options.files).map((rfilename) => ({ rfilename }))
    const { gated = false } = options
    return Response.json({ id: 'org/model', sha: commit, private: false, gated, siblings })
  }
  if (path === `/api/models/org/model/tree/${commit}`) return answerTree(options, url)
  const place = `/org/model/resolve/${commit}/`
  if (path.startsWith(place)) return answerFile(options, path.slice(place.length))
  return Response.json({ error: 'Repository not found' }, { status: 404 })
}

function answerTree(
  { files, hasTree = true, entriesPerPage = 1_000 }: HubOptions,
  url: URL,
): Response {
  if (!hasTree) return new Response('no such route', { status: 404 })
  const entries = Object.entries(files).map(([path, { content, isLarge }]) => ({
    type: 'file',
    path,
    size: content.length,
    oid: isLarge ? 'f'.repeat(40) : gitSha1Of(content),
    ...(isLarge ? { lfs: { oid: sha256Of(content), size: content.length, pointerSize: 134 } } : {}),
  }))
  const folder = { type: 'directory', oid: 'e'.repeat(40), size: 0, path: 'folder' }
  const from = Number(url.searchParams.get('cursor') ?? 0)
  const next = from + entriesPerPage
  const link = `<${url.origin}${url.pathname}?recursive=true&cursor=${next}>; rel="next"`
  const page = [...(from === 0 ? [folder] : []), ...entries.slice(from, next)]
  return Response.json(page, { headers: next < entries.length ? { link } : {} })
}

function answerFile({ files, storeUrl }: HubOptions, path: string): Response {
  const file = files[path]
  if (file === undefined) return new Response('Entry not found', { status: 404 })
  const { content, isLarge } = file
  const always = { 'x-repo-commit': commit }
  if (!isLarge || storeUrl === undefined) {
    const body = new Uint8Array(content)
    return new Response(body, { headers: { ...always, etag: `"${gitSha1Of(content)}"` } })
  }
  const sha256 = sha256Of(content)
  return new Response('Found. Redirecting', {
    status: 302,
    headers: {
      ...always,
      'x-linked-etag': `"${sha256}"`,
      'x-linked-size': String(content.length),
      location: `${storeUrl}/${sha256}?signature=short-lived`,
    },
  })
}

export function gitSha1Of(content: Uint8Array): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex')
}

export function sha256Of(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
