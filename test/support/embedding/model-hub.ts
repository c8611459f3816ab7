/** A model hub on this machine: repositories of one revision, with hashes, sizes and ranges. */
export type ModelHub = {
  readonly url: string
  /** Requests for file contents. */
  readonly downloads: () => number
  stop(): Promise<void>
}

const commit = '0123456789abcdef0123456789abcdef01234567'

/** The files of each repository `org/name`, by their paths. */
export function startModelHub(
  repositories: Readonly<Record<string, Readonly<Record<string, Uint8Array>>>>,
): ModelHub {
  let downloads = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const path = decodeURIComponent(new URL(request.url).pathname)
      const [, name = '', kind, rest = ''] =
        /^\/(?:api\/models\/)?([^/]+\/[^/]+)\/(revision|tree|resolve)\/(.*)$/.exec(path) ?? []
      const files = repositories[name]
      if (files === undefined) return new Response('{}', { status: 404 })
      if (kind === 'revision') return Response.json({ sha: commit, siblings: [] })
      if (kind === 'tree') return Response.json(Object.entries(files).map(describe))
      const content = files[rest.slice(commit.length + 1)]
      if (content === undefined) return new Response('', { status: 404 })
      downloads++
      return respond(request, content)
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    downloads: () => downloads,
    stop: () => server.stop(true),
  }
}

function describe([path, content]: [string, Uint8Array]) {
  const oid = new Bun.CryptoHasher('sha256').update(content).digest('hex')
  return { type: 'file', path, size: content.length, oid, lfs: { oid, size: content.length } }
}

function respond(request: Request, content: Uint8Array): Response {
  const headers = { 'accept-ranges': 'bytes', etag: `"${content.length}"` }
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get('range') ?? '') ?? []
  if (from === undefined) return new Response(new Uint8Array(content), { headers })
  const start = Number(from)
  const end = Math.min(to ? Number(to) + 1 : content.length, content.length)
  const range = `bytes ${start}-${end - 1}/${content.length}`
  return new Response(new Uint8Array(content.subarray(start, end)), {
    status: 206,
    headers: { ...headers, 'content-range': range },
  })
}
