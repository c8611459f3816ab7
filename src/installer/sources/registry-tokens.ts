import { asRecord, parseJson } from '#lib/json.ts'
import { createLru } from '#lib/lru.ts'

type ReadResponse = { readonly status: number; readonly bytes: Uint8Array }

const tokensMax = 256
const responseBytesMax = 65_536
const tokenCharsMax = 16_384

/**
 * Anonymous bearer tokens of container registries. The 401 response of a registry names its token
 * server. A token is for one repository, is sent to that registry only and is renewed on a 401.
 */
export function createRegistryTokens(
  read: (url: URL, request: { signal: AbortSignal; bytesMax: number }) => Promise<ReadResponse>,
) {
  const tokens = createLru<string, string>(tokensMax)
  return {
    tokenFor(url: URL): string | undefined {
      const repository = repositoryOf(url)
      return repository === null ? undefined : tokens.get(repository)
    },
    /** Fetches a token for a 401 response; true: retry the request with it. */
    async fetchToken(url: URL, unauthorized: Response, signal: AbortSignal): Promise<boolean> {
      const repository = repositoryOf(url)
      const tokenUrl = tokenUrlOf(unauthorized.headers.get('www-authenticate') ?? '')
      if (repository === null || tokenUrl === null) return false
      const response = await read(tokenUrl, { signal, bytesMax: responseBytesMax })
      if (response.status !== 200) return false
      const fields = asRecord(parseJson(new TextDecoder().decode(response.bytes)))
      const token = fields['token'] ?? fields['access_token']
      if (typeof token !== 'string' || !isToken(token)) return false
      tokens.set(repository, token)
      return true
    },
  }
}

/** `https://registry/v2/some/name/blobs/…` → `https://registry/v2/some/name`; null: not a registry URL. */
function repositoryOf({ origin, pathname }: URL): string | null {
  const path = /^\/v2\/.+(?=\/(?:blobs|manifests)\/)/.exec(pathname)?.[0]
  return path === undefined ? null : `${origin}${path}`
}

/** `Bearer realm="https://auth/token",service="registry",scope="repository:a/b:pull"` → a URL. */
function tokenUrlOf(challenge: string): URL | null {
  if (!/^bearer\s/i.test(challenge)) return null
  const fields = new Map(
    [...challenge.matchAll(/([a-z]+)="([^"]*)"/gi)].map(([, name = '', value = '']) => [
      name.toLowerCase(),
      value,
    ]),
  )
  const url = URL.parse(fields.get('realm') ?? '')
  for (const name of ['service', 'scope']) {
    const value = fields.get(name)
    if (value !== undefined) url?.searchParams.set(name, value)
  }
  return url
}

/** The token becomes part of a header. */
function isToken(text: string): boolean {
  return text.length <= tokenCharsMax && /^[\x21-\x7e]+$/.test(text)
}
