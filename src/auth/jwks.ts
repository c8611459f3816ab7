import { type CryptoKey, createLocalJWKSet, errors, type JWTHeaderParameters } from 'jose'
import { messageOf } from '#lib/error-message.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import type { Log } from '#telemetry/log.ts'

export type KeySet = ReturnType<typeof createKeySet>

export type KeySetOptions = {
  url: string
  fetch: typeof fetch
  log: Pick<Log, 'warn' | 'info'>
  /** How long the last set is used while the provider is unreachable. */
  ageMaxMs: number
  /** The refresh interval; a removed key is refused after that. */
  refreshMs?: number
  /** Tokens with unknown key ids cause at most one request in this time. */
  cooldownMs?: number
}

const defaultRefreshMs = 600_000
const defaultCooldownMs = 30_000
/** The background retry after a failure. */
const retryMs = 10_000
/** The least time between fetches for tokens that wait for a first set. */
const refetchMs = 1_000
const fetchTimeoutMs = 5_000
const bodyBytesMax = 1_048_576

type Loaded = { find: ReturnType<typeof createLocalJWKSet>; text: string; loadedAt: number }

/** The public keys of an identity provider, refreshed periodically. */
export function createKeySet(options: KeySetOptions) {
  const { cooldownMs = defaultCooldownMs, refreshMs = defaultRefreshMs } = options
  let loaded: Loaded | undefined
  let loading: Promise<void> | undefined
  let failedAt = Number.NEGATIVE_INFINITY
  let unknownKeySearchedAt = Number.NEGATIVE_INFINITY
  let version = 0
  let refresher: ReturnType<typeof setTimeout> | undefined
  const closed = new AbortController()

  /** Shared by concurrent callers; never rejects. */
  function load(): Promise<void> {
    loading ??= fetchKeySetText(options, closed.signal)
      .then(accept)
      .then(scheduleRefresh, reportFailure)
    return loading
  }
  function scheduleRefresh() {
    loading = undefined
    clearTimeout(refresher)
    const pauseMs = performance.now() - failedAt < retryMs ? retryMs : refreshMs
    if (!closed.signal.aborted) refresher = setTimeout(load, pauseMs)
  }
  function reportFailure(error: unknown) {
    failedAt = performance.now()
    scheduleRefresh()
    if (closed.signal.aborted) return
    options.log.warn('JWKS fetch failed', { error })
  }
  function accept(text: string) {
    const find = createLocalJWKSet(parseKeySet(text))
    if (text !== loaded?.text) version += 1
    loaded = { find, text, loadedAt: performance.now() }
  }
  async function current(): Promise<Loaded> {
    const isUsable = (set: Loaded | undefined): set is Loaded =>
      set !== undefined && performance.now() - set.loadedAt <= options.ageMaxMs
    const mayFetch = loading !== undefined || performance.now() - failedAt >= refetchMs
    if (!isUsable(loaded) && mayFetch) await load()
    if (isUsable(loaded)) return loaded
    throw new AppError(
      'service_unavailable',
      'The identity provider is unreachable, so tokens cannot be verified.',
      { retryAfterS: 5 },
    )
  }
  void load()
  return {
    /** Rises when the published keys change: tokens must be verified again. */
    version: () => version,
    /** The key that a token names; throws `invalid_token`, or `service_unavailable` without a set. */
    async keyFor(header: JWTHeaderParameters): Promise<CryptoKey> {
      const set = await current()
      const known = await findKey(set, header)
      if (known !== undefined) return known
      if (performance.now() - unknownKeySearchedAt >= cooldownMs) {
        unknownKeySearchedAt = performance.now()
        await load()
      } else {
        await loading
      }
      const published = loaded && loaded !== set ? await findKey(loaded, header) : undefined
      if (published !== undefined) return published
      throw new AppError(
        'invalid_token',
        'The token is signed with a key that the identity provider does not publish.',
      )
    },
    close() {
      clearTimeout(refresher)
      closed.abort()
    },
  }
}

async function findKey(set: Loaded, header: JWTHeaderParameters): Promise<CryptoKey | undefined> {
  try {
    return await set.find(header)
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return undefined
    const sentence =
      error instanceof errors.JWKSMultipleMatchingKeys
        ? 'The token does not say which key it is signed with.'
        : 'The key that the token is signed with cannot be used.'
    throw new AppError('invalid_token', sentence, { cause: error })
  }
}

/** Throws if there is no key set at this URL. */
export async function requireKeySet(options: Pick<KeySetOptions, 'url' | 'fetch'>): Promise<void> {
  try {
    parseKeySet(await fetchKeySetText(options))
  } catch (cause) {
    const reason = messageOf(cause)
    throw new Error(`jwt.jwks_url has no key set: ${reason}`, { cause })
  }
}

/** The published key set; throws if it cannot be fetched. */
export async function fetchKeySetText(
  options: Pick<KeySetOptions, 'url' | 'fetch'>,
  closed?: AbortSignal,
): Promise<string> {
  const timeout = AbortSignal.timeout(fetchTimeoutMs)
  const response = await options.fetch(options.url, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: closed === undefined ? timeout : AbortSignal.any([closed, timeout]),
  })
  if (!response.ok || response.body === null) {
    await response.body?.cancel()
    throw new Error(`the key set has status ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body) {
    length += chunk.length
    if (length > bodyBytesMax) throw new Error(`the key set is longer than ${bodyBytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Throws for a set without keys. */
export function parseKeySet(text: string): Parameters<typeof createLocalJWKSet>[0] {
  const value: unknown = JSON.parse(text)
  if (!isRecord(value) || !Array.isArray(value['keys']) || value['keys'].length === 0) {
    throw new Error('the key set has no keys')
  }
  return { keys: value['keys'] }
}
