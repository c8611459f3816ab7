import { isIP } from 'node:net'
import type { UpstreamHttpRequest } from '#inference/transport.ts'
import { cachedLatest } from '#lib/cached-by-key.ts'
import { isFieldName, isFieldValue } from './http1-head.ts'

/** The server and path of a request, parsed from its URL. */
export type Endpoint = {
  /** Connections with the same origin are interchangeable: `https://host:8443`. */
  readonly origin: string
  /** A name or an address, IPv6 without brackets. */
  readonly hostname: string
  readonly port: number
  readonly tls: boolean
  /** The name for SNI; empty for an address, which must not be sent (RFC 6066, 3). */
  readonly serverName: string
  /** The Host header. */
  readonly host: string
  readonly pathAndQuery: string
}

const cachedEndpointsMax = 1_024
const userAgent = 'sluice/0.1'

/** Set by the transport: they determine the framing. */
const reservedHeaders = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * Upstreams have few URLs, and parsing one costs as much as rendering the head. Throws a plain error
 * without the URL, which may contain a credential.
 */
export const endpointOf = cachedLatest(cachedEndpointsMax, parseEndpoint)

function parseEndpoint(url: string): Endpoint {
  const parsed = URL.parse(url)
  if (parsed === null) throw new Error('the URL of the upstream is invalid')
  const tls = parsed.protocol === 'https:'
  if (!tls && parsed.protocol !== 'http:') {
    throw new Error('the URL of the upstream is neither http nor https')
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new Error('the URL of the upstream contains credentials; use its key instead')
  }
  const hostname = parsed.hostname.replace(/^\[|\]$/g, '')
  return {
    origin: parsed.origin,
    hostname,
    port: parsed.port === '' ? (tls ? 443 : 80) : Number(parsed.port),
    tls,
    serverName: isIP(hostname) === 0 ? hostname : '',
    host: parsed.host,
    pathAndQuery: parsed.pathname + parsed.search,
  }
}

/** A request whose head is rendered. */
export type RenderedRequest = { readonly head: string; readonly body: string | Uint8Array }

/** Throws as `headersOf` does. */
export function renderRequest(endpoint: Endpoint, request: UpstreamHttpRequest): RenderedRequest {
  const body = request.body ?? ''
  return { head: renderHead(endpoint, request, Buffer.byteLength(body)), body }
}

/** Most requests are shorter; their bytes are built in one place, and copied by the kernel. */
const scratch = Buffer.allocUnsafeSlow(65_536)

/** The bytes of a request, valid until the next call. */
export function bytesOf({ head, body }: RenderedRequest): Uint8Array {
  const bytesMax = head.length + (typeof body === 'string' ? body.length * 3 : body.length)
  const bytes = bytesMax <= scratch.length ? scratch : Buffer.allocUnsafe(bytesMax)
  const headBytes = bytes.write(head, 'latin1')
  if (typeof body === 'string') return bytes.subarray(0, headBytes + bytes.write(body, headBytes))
  bytes.set(body, headBytes)
  return bytes.subarray(0, headBytes + body.length)
}

/**
 * The headers of a request by lower-case name, without those of the connection and the body length.
 * Throws a plain error for an invalid header, without its value, which may be a credential.
 */
export function headersOf(endpoint: Endpoint, request: UpstreamHttpRequest): Map<string, string> {
  const headers = new Map([
    ['host', endpoint.host],
    ['user-agent', userAgent],
  ])
  for (const [name, value] of Object.entries(request.headers)) {
    const key = name.toLowerCase()
    if (!isFieldName(key)) throw new Error('a request header has an invalid name')
    if (!isFieldValue(value)) throw new Error(`the request header ${key} has an invalid character`)
    if (reservedHeaders.has(key)) throw new Error(`the request header ${key} cannot be set`)
    headers.set(key, value)
  }
  return headers.set('accept-encoding', 'identity')
}

/** The headers of `identity`, without those that `given` has. */
export function identityHeaders(
  given: { has(name: string): boolean },
  { identity }: UpstreamHttpRequest,
): readonly (readonly [name: string, value: string])[] {
  if (identity === undefined) return []
  const { requestId, trace } = identity
  const headers: [string, string][] = []
  if (!given.has('x-request-id')) headers.push(['x-request-id', requestId])
  if (trace === null || given.has('traceparent')) return headers
  headers.push(['traceparent', trace.traceparent])
  if (trace.tracestate !== null) headers.push(['tracestate', trace.tracestate])
  return headers
}

type RenderedStart = {
  readonly endpoint: Endpoint
  readonly method: string
  readonly text: string
  readonly names: ReadonlySet<string>
}

/** By their headers, since most requests to an upstream share one set, which never changes. */
const renderedStarts = new WeakMap<UpstreamHttpRequest['headers'], RenderedStart>()

function renderHead(endpoint: Endpoint, request: UpstreamHttpRequest, bodyBytes: number): string {
  const { text, names } = renderStart(endpoint, request)
  let start = text
  for (const [name, value] of identityHeaders(names, request)) start += `${name}: ${value}\r\n`
  const hasBody = request.method === 'POST' || bodyBytes > 0
  return hasBody ? `${start}content-length: ${bodyBytes}\r\n\r\n` : `${start}\r\n`
}

/** The head without the length of the body. */
function renderStart(endpoint: Endpoint, request: UpstreamHttpRequest): RenderedStart {
  const { headers, method } = request
  const known = renderedStarts.get(headers)
  if (known?.endpoint === endpoint && known.method === method) return known
  let text = `${method} ${endpoint.pathAndQuery} HTTP/1.1\r\n`
  const all = headersOf(endpoint, request)
  for (const [name, value] of all) text += `${name}: ${value}\r\n`
  text += 'connection: keep-alive\r\n'
  const rendered = { endpoint, method, text, names: new Set(all.keys()) }
  renderedStarts.set(headers, rendered)
  return rendered
}
