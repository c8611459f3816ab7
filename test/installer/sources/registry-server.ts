import { sha256Of } from './hub-server.ts'

export type Layer = {
  content: Uint8Array
  mediaType?: string
  annotations?: Readonly<Record<string, string>>
  /** Overrides of the manifest. */
  digest?: string
}

export type RegistryOptions = {
  layers: readonly Layer[]
  /** Requires an anonymous token, as public registries do. */
  wantsToken?: boolean
  /** The token server; default: the registry itself. */
  realm?: string
  /** More manifests by tag. */
  manifests?: Readonly<Record<string, object>>
}

/** A registry with one repository, `library/model`, and its tag `latest`. */
export type RegistryServer = {
  /** Host and port. */
  readonly host: string
  readonly manifestDigest: string
  readonly questions: readonly { readonly path: string; readonly token: string }[]
  /** Revokes all tokens. */
  forgetTokens(): void
  stop(): Promise<void>
}

export const manifestType = 'application/vnd.oci.image.manifest.v1+json'
export const indexType = 'application/vnd.oci.image.index.v1+json'

export function startRegistry(options: RegistryOptions): RegistryServer {
  const questions: { path: string; token: string }[] = []
  const tokens = new Set<string>()
  const manifests = new Map<string, string>()
  const keep = (tag: string, manifest: object) => {
    const text = JSON.stringify(manifest)
    const digest = `sha256:${sha256Of(new TextEncoder().encode(text))}`
    manifests.set(tag, text).set(digest, text)
    return digest
  }
  const manifestDigest = keep('latest', manifestOf(options.layers))
  for (const [tag, manifest] of Object.entries(options.manifests ?? {})) keep(tag, manifest)
  const blobs = new Map(options.layers.map(({ content }) => [digestOf(content), content]))

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request): Response {
      const { pathname, searchParams } = new URL(request.url)
      const token = request.headers.get('authorization') ?? ''
      questions.push({ path: pathname, token })
      if (pathname === '/token') {
        const given = `${searchParams.get('service')} ${searchParams.get('scope')} ${tokens.size}`
        const text = Buffer.from(given).toString('base64url')
        tokens.add(text)
        return Response.json({ token: text, expires_in: 300 })
      }
      if (options.wantsToken && !tokens.has(token.replace('Bearer ', ''))) {
        const realm = options.realm ?? `http://127.0.0.1:${server.port}/token`
        const scope = 'repository:library/model:pull'
        const challenge = `Bearer realm="${realm}",service="models",scope="${scope}"`
        return new Response('{}', { status: 401, headers: { 'www-authenticate': challenge } })
      }
      const [, kind, reference = ''] =
        /^\/v2\/library\/model\/(manifests|blobs)\/(.+)$/.exec(pathname) ?? []
      const found = kind === 'blobs' ? blobs.get(reference) : manifests.get(reference)
      if (found === undefined) return new Response('{"errors":[]}', { status: 404 })
      return new Response(typeof found === 'string' ? found : new Uint8Array(found))
    },
  })
  return {
    host: `127.0.0.1:${server.port}`,
    manifestDigest,
    questions,
    forgetTokens: () => tokens.clear(),
    stop: () => server.stop(true),
  }
}

export function manifestOf(layers: readonly Layer[]): object {
  return {
    schemaVersion: 2,
    mediaType: manifestType,
    config: {
      mediaType: 'application/vnd.oci.empty.v1+json',
      digest: digestOf(Buffer.from('{}')),
      size: 2,
    },
    layers: layers.map(
      ({ content, mediaType = 'application/octet-stream', annotations, digest }) => ({
        mediaType,
        digest: digest ?? digestOf(content),
        size: content.length,
        ...(annotations === undefined ? {} : { annotations }),
      }),
    ),
  }
}

export function digestOf(content: Uint8Array): string {
  return `sha256:${sha256Of(content)}`
}
