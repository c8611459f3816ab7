import type { AllowedMethods } from '#api/allowed-methods.ts'
import type { Endpoint } from '#api/endpoint.ts'
import { isUpgrade } from '#auth/credentials.ts'
import { isMessagesPath } from '#http/error-envelope.ts'
import type { ClientAddresses, Peers } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import type { CorsSettings } from './config.ts'

/** Requests of pages of other origins. */
export type Cors = {
  /**
   * Adds the headers by which the browser gives the response to the page. Returns the response to a
   * preflight request; throws `permission_denied` for one, and for a WebSocket, of another origin.
   */
  receive(arrival: CorsArrival): Response | null
}

type CorsArrival = {
  readonly request: Request
  readonly path: string
  readonly headers: Record<string, string | number>
  readonly peers: Peers | null
}

/** Headers that clients send with any request. The SDKs add theirs with the prefixes. */
const usualRequestHeaders = [
  'accept',
  'authorization',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-none-match',
  'last-event-id',
  'range',
  'traceparent',
  'tracestate',
  'x-api-key',
]
const requestHeaderPrefixes = ['anthropic-', 'openai-', 'x-sluice-', 'x-stainless-']

/** Headers of responses beyond those that endpoints declare. */
const usualResponseHeaders = [
  'content-disposition',
  'etag',
  'location',
  'retry-after',
  'server-timing',
  'x-request-id',
  'x-should-retry',
]
const rateLimitFields = ['limit', 'remaining', 'reset']
const rateLimitHeaders = ['requests', 'tokens'].flatMap((kind) =>
  rateLimitFields.map((field) => `x-ratelimit-${field}-${kind}`),
)
const rateLimitHeadersOfMessages = ['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap(
  (kind) => rateLimitFields.map((field) => `anthropic-ratelimit-${kind}-${field}`),
)
/** Never given to a page, or known without being exposed. */
const notExposed = ['set-cookie', 'content-length']

/** Null: no other origin is allowed, and nothing is checked. */
export function createCors(
  { origins, credentials, maxAgeS }: CorsSettings,
  deps: {
    readonly endpoints: readonly Endpoint[]
    readonly allowedMethods: AllowedMethods
    readonly clientAddresses: ClientAddresses
    /** Where browsers see the gateway, if that is configured. */
    readonly publicUrl: string | undefined
  },
): Cors | null {
  if (origins.length === 0) return null
  const { endpoints, allowedMethods, clientAddresses, publicUrl } = deps
  const exact = new Set(origins.filter((origin) => !origin.includes('*')))
  const patterns = origins.filter((origin) => origin.includes('*')).map(patternOf)
  const isAllowed = (origin: string) =>
    exact.has(origin) || patterns.some((pattern) => pattern.test(origin))
  const requestHeaders = new Set([...usualRequestHeaders, ...declaredRequestHeaders(endpoints)])
  const declared = new Set([...usualResponseHeaders, ...declaredResponseHeaders(endpoints)])
  const exposed = [...declared, ...rateLimitHeaders].join(', ')
  const exposedOfMessages = [...declared, 'request-id', ...rateLimitHeadersOfMessages].join(', ')

  /** Pages of the gateway itself. Its scheme may be that of a proxy, so the host decides. */
  const isOwn = (origin: string, { request, peers }: CorsArrival) => {
    if (!URL.canParse(origin)) return false
    const own = [request.url, clientAddresses.originOf(request, peers), publicUrl ?? request.url]
    return own.some((url) => new URL(url).host === new URL(origin).host)
  }

  const preflight = ({ request, path, headers }: CorsArrival): Response | null => {
    const methods = allowedMethods(path)
    if (methods.length === 0) return null
    const asked = request.headers.get('access-control-request-headers')?.toLowerCase() ?? ''
    const known = asked
      .split(',')
      .map((name) => name.trim())
      .filter(
        (name) =>
          requestHeaders.has(name) || requestHeaderPrefixes.some((start) => name.startsWith(start)),
      )
    headers['access-control-allow-methods'] = methods.join(', ')
    if (known.length > 0) headers['access-control-allow-headers'] = known.join(', ')
    headers['access-control-max-age'] = maxAgeS
    headers['vary'] = 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers'
    return new Response(null, { status: 204 })
  }

  return {
    receive(arrival) {
      const { request, headers } = arrival
      headers['vary'] = 'Origin'
      const origin = request.headers.get('origin')
      if (origin === null) return null
      const isPreflight =
        request.method === 'OPTIONS' && request.headers.has('access-control-request-method')
      if (!isAllowed(origin)) {
        const isChecked = isPreflight || isUpgrade(request)
        if (!isChecked || isOwn(origin, arrival)) return null
        throw new AppError('permission_denied', 'Pages of this origin have no access.', {
          code: 'origin_not_allowed',
        })
      }
      headers['access-control-allow-origin'] = origin
      if (credentials) headers['access-control-allow-credentials'] = 'true'
      if (isPreflight) return preflight(arrival)
      headers['access-control-expose-headers'] = isMessagesPath(arrival.path)
        ? exposedOfMessages
        : exposed
      return null
    },
  }
}

/** `https://*.example.com`: one or more labels instead of the star. */
function patternOf(origin: string): RegExp {
  const [before = '', after = ''] = origin.split('*')
  const quote = (text: string) => text.replace(/[.+?^${}()|[\]\\/]/g, '\\$&')
  return new RegExp(`^${quote(before)}(?:[a-z0-9-]+\\.)*[a-z0-9-]+${quote(after)}$`)
}

function declaredRequestHeaders(endpoints: readonly Endpoint[]): string[] {
  return endpoints.flatMap(({ headers }) => Object.keys(headers?.properties ?? {}))
}

function declaredResponseHeaders(endpoints: readonly Endpoint[]): string[] {
  return endpoints.flatMap(({ responses }) =>
    Object.values(responses).flatMap(({ headers }) =>
      Object.keys(headers ?? {})
        .map((name) => name.toLowerCase())
        .filter((name) => !notExposed.includes(name)),
    ),
  )
}
