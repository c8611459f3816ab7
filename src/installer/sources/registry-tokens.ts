import { asRecord, parseJson } from '#lib/json.ts'
import { createLru } from '#lib/lru.ts'
import type { Origin } from './origin.ts'

/**
 * Bearer tokens of container registries, got without a name. A registry says in its refusal who
 * gives them out; one is for one repository, goes to that registry alone, and is asked for again
 * when the registry no longer takes it.
 */
export type RegistryTokens = {
  tokenFor(url: URL): string | undefined
  /** Whether the refusal named somebody who gave a token; then it is worth to ask again. */
  answerChallenge(url: URL, refusal: Response, signal: AbortSignal): Promise<boolean>
}

const tokensMax = 256
const answerBytesMax = 65_536
const tokenLengthMax = 16_384

export function createRegistryTokens({ read }: Pick<Origin, 'read'>): RegistryTokens {
  const tokens = createLru<string, string>(tokensMax)
  return {
    tokenFor(url) {
      const repository = repositoryOf(url)
      return repository === null ? undefined : tokens.get(repository)
    },
    async answerChallenge(url, refusal, signal) {
      const repository = repositoryOf(url)
      const place = placeOfTokens(refusal.headers.get('www-authenticate') ?? '')
      if (repository === null || place === null) return false
      const answer = await read(place, { signal, bytesMax: answerBytesMax })
      if (answer.status !== 200) return false
      const fields = asRecord(parseJson(new TextDecoder().decode(answer.bytes)))
      const token = fields['token'] ?? fields['access_token']
      if (typeof token !== 'string' || !isToken(token)) return false
      tokens.set(repository, token)
      return true
    },
  }
}

/** `https://registry/v2/some/name/blobs/…` → `https://registry/v2/some/name`; null: no registry's. */
function repositoryOf({ origin, pathname }: URL): string | null {
  const path = /^\/v2\/.+(?=\/(?:blobs|manifests)\/)/.exec(pathname)?.[0]
  return path === undefined ? null : `${origin}${path}`
}

/** `Bearer realm="https://auth/token",service="registry",scope="repository:a/b:pull"` → a URL. */
function placeOfTokens(challenge: string): URL | null {
  if (!/^bearer\s/i.test(challenge)) return null
  const fields = new Map(
    [...challenge.matchAll(/([a-z]+)="([^"]*)"/gi)].map(([, name = '', value = '']) => [
      name.toLowerCase(),
      value,
    ]),
  )
  const place = URL.parse(fields.get('realm') ?? '')
  for (const name of ['service', 'scope']) {
    const value = fields.get(name)
    if (value !== undefined) place?.searchParams.set(name, value)
  }
  return place
}

/** It becomes part of a header. */
function isToken(text: string): boolean {
  return text.length <= tokenLengthMax && /^[\x21-\x7e]+$/.test(text)
}
