import type { InstallerSettings } from '#installer/config.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { checkUrl, matchesHost, portOf, type UrlPolicy } from '#outbound/check-url.ts'
import { type Fetch, fetchFromAddresses } from '#outbound/checked-fetch.ts'
import { limitBody } from '#outbound/limit-body.ts'
import type { Resolve as ResolveHost } from '#outbound/resolve.ts'
import { createRegistryTokens } from './registry-tokens.ts'

export type OriginDeps = { fetch: Fetch; resolve: ResolveHost }

export type OriginRequest = {
  readonly method?: 'GET' | 'HEAD'
  readonly headers?: Readonly<Record<string, string>>
  /** Returns redirects instead of following them. */
  readonly returnsRedirect?: boolean
  readonly signal: AbortSignal
}

export type Origin = ReturnType<typeof createOrigin>

const redirectsMax = 5
const redirectStatuses = new Set([301, 302, 303, 307, 308])

/**
 * HTTP access to model sources. Every URL, including redirect targets, is checked, resolved once and
 * requested at the checked address. Credentials are only sent to their own host. Throws
 * `permission_denied` (`host_not_allowed`) and `upstream_*`; does not check the status.
 */
export function createOrigin(settings: InstallerSettings, deps: OriginDeps) {
  const hub = new URL(settings.hubUrl)
  const tokens = createRegistryTokens(read)

  /** Resolves with the response headers and the last URL; the caller reads or cancels the body. */
  async function open(url: URL, request: OriginRequest): Promise<{ response: Response; url: URL }> {
    let at = url
    for (let redirects = 0; redirects <= redirectsMax; redirects++) {
      const response = await requestWithToken(at, request, redirects > 0)
      const target = request.returnsRedirect ? null : redirectOf(response, at)
      if (target === null) return { response, url: at }
      cancelBody(response)
      at = target
    }
    throw new AppError('upstream_invalid_answer', 'The source redirects too often.')
  }

  async function requestWithToken(url: URL, request: OriginRequest, isRedirected: boolean) {
    const response = await send(url, request, isRedirected)
    if (response.status !== 401 || !(await tokens.fetchToken(url, response, request.signal))) {
      return response
    }
    cancelBody(response)
    return send(url, request, isRedirected)
  }

  async function send(url: URL, request: OriginRequest, isRedirected: boolean): Promise<Response> {
    const { method = 'GET', headers, signal } = request
    const what = isRedirected ? `The redirect to ${url.host}` : `The source ${url.host}`
    const addresses = await resolveAllowed({ settings, deps }, url, what)
    signal.throwIfAborted()
    const credential = credentialFor(url)
    const init = {
      method,
      headers: { ...headers, ...(credential === null ? {} : { authorization: credential }) },
      signal,
    }
    try {
      return await fetchFromAddresses(deps, { url, addresses, init })
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof AppError) || error.kind !== 'upstream_unreachable') throw error
      throw unreachable(`${place(url)} could not be reached.`, error)
    }
  }

  /** The host for an error message, with the setting that names it. */
  function place(url: URL): string {
    return url.origin === hub.origin ? `${url.host} (installer.hub_url)` : url.host
  }

  /** When a host does not respond in time. */
  function responseTimeout(url: URL): AppError {
    return new AppError(
      'upstream_first_event_timeout',
      `${place(url)} did not respond within ${settings.answerMs / 1000} s (installer.answer_ms).`,
    )
  }

  function credentialFor(url: URL): string | null {
    const { hubToken } = settings
    const token = url.origin === hub.origin ? hubToken : tokens.tokenFor(url)
    return token === undefined ? null : `Bearer ${token}`
  }

  /** Reads a short response. */
  async function read(url: URL, request: OriginRequest & { readonly bytesMax: number }) {
    const { controller, release } = followSignal(request.signal)
    const { signal } = controller
    const timer = setTimeout(() => controller.abort(responseTimeout(url)), settings.answerMs)
    const end = () => {
      clearTimeout(timer)
      release()
    }
    try {
      const opened = await open(url, { ...request, signal })
      const limited = limitBody(opened.response, { bytesMax: request.bytesMax, signal, end })
      const bytes = await limited.bytes()
      return { status: limited.status, headers: limited.headers, bytes }
    } catch (error) {
      const failure = signal.aborted ? signal.reason : error
      controller.abort()
      throw failure
    } finally {
      end()
    }
  }

  return { open, read, place, responseTimeout }
}

/** The configured hub may be at any address. */
async function resolveAllowed(
  { settings, deps }: { settings: InstallerSettings; deps: OriginDeps },
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
    seen.addresses = await deps.resolve(name)
    return seen.addresses
  }
  try {
    return await checkUrl(url, policy, { what, resolve })
  } catch (cause) {
    const isHub = url.origin === new URL(settings.hubUrl).origin
    if (seen.addresses?.length === 0) {
      const setting = isHub ? ' (installer.hub_url)' : ''
      throw unreachable(`The host ${url.hostname}${setting} cannot be resolved.`, cause)
    }
    const message = cause instanceof AppError ? cause.message : `${what} is not allowed.`
    const setting = isHub ? 'hub_url' : settingAtFault(url, settings)
    const advice = `${message} See installer.${setting}.`
    throw new AppError('permission_denied', advice, { code: 'host_not_allowed', cause })
  }
}

/** The setting that would allow a refused URL. */
function settingAtFault(url: URL, { hosts, ports }: InstallerSettings): string {
  if (!matchesHost(url.hostname, hosts)) return 'hosts'
  const isHttps = url.protocol === 'https:'
  return isHttps && ports.length > 0 && !ports.includes(portOf(url)) ? 'ports' : 'private_hosts'
}

function unreachable(message: string, cause: unknown): AppError {
  return new AppError('upstream_unreachable', message, { cause })
}

/** An unread body that is not cancelled keeps its connection open. */
export function cancelBody(response: Response): void {
  void response.body?.cancel().catch(() => {})
}

/** Null: the response is not a redirect. */
function redirectOf(response: Response, from: URL): URL | null {
  if (!redirectStatuses.has(response.status)) return null
  const location = response.headers.get('location')
  const target = location === null ? null : URL.parse(location, from.href)
  if (target !== null && (from.protocol === 'http:' || target.protocol === 'https:')) return target
  cancelBody(response)
  throw new AppError(
    'upstream_invalid_answer',
    'The source redirects to an invalid or insecure URL.',
  )
}
