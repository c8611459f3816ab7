import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { checkUrl, type UrlPolicy } from '#outbound/check-url.ts'
import { type Fetch, fetchFromAddresses } from '#outbound/checked-fetch.ts'
import { limitBody } from '#outbound/limit-body.ts'
import type { Resolve as ResolveHost } from '#outbound/resolve.ts'
import { createRegistryTokens } from './registry-tokens.ts'

/** Of the section `installer` of the configuration. */
export type OriginSettings = {
  readonly hubUrl: string
  readonly hubToken?: string
  readonly hosts: readonly string[]
  readonly ports: readonly number[]
  readonly privateHosts: boolean
  /** For the head of an answer, and for the whole of a short one. */
  readonly answerMs: number
}

export type OriginWorld = { fetch: Fetch; resolve: ResolveHost }

export type OriginRequest = {
  readonly method?: 'GET' | 'HEAD'
  readonly headers?: Readonly<Record<string, string>>
  /** Whether a redirect is the answer; without it, redirects are followed. */
  readonly takesRedirect?: boolean
  readonly signal: AbortSignal
}

type OriginAnswer = {
  readonly response: Response
  /** Who answered in the end. */
  readonly url: URL
}

type ShortAnswer = {
  readonly status: number
  readonly headers: Headers
  readonly url: URL
  readonly bytes: Uint8Array
}

/**
 * The hosts that models come from. Every URL, also one that a redirect names, is checked, resolved
 * once, and asked at the address that was looked at. A credential goes only to the host that it is
 * for. Throws `permission_denied` (`host_not_allowed`), and `upstream_*`; the status of an answer is
 * for the caller to judge.
 */
export type Origin = {
  /** Resolves with the head of the answer, whose body is read or cancelled by the caller. */
  open(url: URL, request: OriginRequest): Promise<OriginAnswer>
  /** The whole of an answer that is short. */
  read(url: URL, request: OriginRequest & { readonly bytesMax: number }): Promise<ShortAnswer>
}

const redirectsMax = 5
const redirectStatuses = new Set([301, 302, 303, 307, 308])

export function createOrigin(settings: OriginSettings, world: OriginWorld): Origin {
  const hub = new URL(settings.hubUrl)
  const tokens = createRegistryTokens({ read })

  async function open(url: URL, request: OriginRequest): Promise<OriginAnswer> {
    let at = url
    for (let redirects = 0; redirects <= redirectsMax; redirects++) {
      const response = await askWithCredential(at, request, redirects > 0)
      const target = request.takesRedirect ? null : redirectOf(response, at)
      if (target === null) return { response, url: at }
      dropBody(response)
      at = target
    }
    throw new AppError('upstream_invalid_answer', 'The source redirects over and over.')
  }

  async function askWithCredential(url: URL, request: OriginRequest, isRedirected: boolean) {
    const response = await ask(url, request, isRedirected)
    if (response.status !== 401 || !(await tokens.answerChallenge(url, response, request.signal))) {
      return response
    }
    dropBody(response)
    return ask(url, request, isRedirected)
  }

  async function ask(url: URL, request: OriginRequest, isRedirected: boolean): Promise<Response> {
    const { method = 'GET', headers, signal } = request
    const what = isRedirected ? 'A redirect of the source' : 'The source'
    const addresses = await lookUp({ settings, world }, url, what)
    signal.throwIfAborted()
    const credential = credentialFor(url)
    const init = {
      method,
      headers: { ...headers, ...(credential === null ? {} : { authorization: credential }) },
      signal,
    }
    try {
      return await fetchFromAddresses(world, { url, addresses, init })
    } catch (error) {
      throw signal.aborted ? signal.reason : error
    }
  }

  function credentialFor(url: URL): string | null {
    const { hubToken } = settings
    const token = url.origin === hub.origin ? hubToken : tokens.tokenFor(url)
    return token === undefined ? null : `Bearer ${token}`
  }

  async function read(
    url: URL,
    request: OriginRequest & { readonly bytesMax: number },
  ): Promise<ShortAnswer> {
    const { controller, release } = followSignal(request.signal)
    const { signal } = controller
    const timer = setTimeout(() => controller.abort(tookTooLong()), settings.answerMs)
    const end = () => {
      clearTimeout(timer)
      release()
    }
    try {
      const answer = await open(url, { ...request, signal })
      const limited = limitBody(answer.response, { bytesMax: request.bytesMax, signal, end })
      const bytes = await limited.bytes()
      return { status: limited.status, headers: limited.headers, url: answer.url, bytes }
    } catch (error) {
      const failure = signal.aborted ? signal.reason : error
      controller.abort()
      throw failure
    } finally {
      end()
    }
  }

  return { open, read }
}

/** The hub is of the administrator's choice, so it may be anywhere. */
async function lookUp(
  { settings, world }: { settings: OriginSettings; world: OriginWorld },
  url: URL,
  what: string,
): Promise<readonly string[]> {
  const { hosts, ports, privateHosts } = settings
  const policy: UrlPolicy =
    url.origin === new URL(settings.hubUrl).origin
      ? { hosts: ['*'], portsAllowed: [], private: true }
      : { hosts, portsAllowed: ports, private: privateHosts }
  const seen: { addresses?: readonly string[] } = {}
  const resolve: ResolveHost = async (name) => {
    seen.addresses = []
    seen.addresses = await world.resolve(name)
    return seen.addresses
  }
  try {
    return await checkUrl(url, policy, { what, resolve })
  } catch (cause) {
    if (seen.addresses?.length === 0) {
      throw new AppError('upstream_unreachable', 'The host of the source is not found.', {
        cause,
      })
    }
    const sentence = cause instanceof AppError ? cause.message : `${what} is refused.`
    throw new AppError('permission_denied', sentence, { code: 'host_not_allowed', cause })
  }
}

/** What is not read must be given up, or its connection stays. */
export function dropBody(response: Response): void {
  void response.body?.cancel().catch(() => {})
}

export function tookTooLong(): AppError {
  return new AppError('upstream_first_event_timeout', 'The source took too long to answer.')
}

/** Null: the answer is no redirect. */
function redirectOf(response: Response, from: URL): URL | null {
  if (!redirectStatuses.has(response.status)) return null
  const location = response.headers.get('location')
  const target = location === null ? null : URL.parse(location, from.href)
  if (target !== null && (from.protocol === 'http:' || target.protocol === 'https:')) return target
  dropBody(response)
  throw new AppError('upstream_invalid_answer', 'The source redirects to nowhere that is safe.')
}
