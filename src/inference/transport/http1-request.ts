import { isIP } from 'node:net'
import type { UpstreamHttpRequest } from '#inference/transport.ts'
import { createLru } from '#lib/lru.ts'
import { isFieldName, isFieldValue } from './http1-fields.ts'

/** Where a request goes, read from its URL. */
export type Target = {
  /** Connections with the same origin are interchangeable: `https://host:8443`. */
  readonly origin: string
  /** To connect to: a name or an address, an IPv6 one without brackets. */
  readonly hostname: string
  readonly port: number
  readonly tls: boolean
  /** The name for SNI; empty for an address, which must not be sent there (RFC 6066, 3). */
  readonly serverName: string
  /** The Host header. */
  readonly host: string
  readonly pathAndQuery: string
}

const knownTargetsMax = 1_024
const userAgent = 'sluice/0.1'

/** What the transport decides by itself, because the framing of the exchange hangs on it. */
const ownHeaders = new Set([
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

/** Upstreams have few URLs, and reading one costs as much as all else that is said in a head. */
const knownTargets = createLru<string, Target>(knownTargetsMax)

/** Throws a plain error, which never repeats the URL, since that may hold a credential. */
export function targetOf(url: string): Target {
  const known = knownTargets.get(url)
  if (known !== undefined) return known
  const target = readTarget(url)
  knownTargets.set(url, target)
  return target
}

function readTarget(url: string): Target {
  const parsed = URL.parse(url)
  if (parsed === null) throw new Error('the URL of the upstream cannot be read')
  const tls = parsed.protocol === 'https:'
  if (!tls && parsed.protocol !== 'http:') {
    throw new Error('the URL of the upstream is neither http nor https')
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new Error('the URL of the upstream holds credentials, which belong in its key')
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

/** The request as it goes over the wire, head and body in one piece; throws as `headersOf` does. */
export function renderRequest(target: Target, request: UpstreamHttpRequest): Uint8Array {
  const body = request.body ?? ''
  const bodyBytes = Buffer.byteLength(body)
  const head = renderHead(target, request, bodyBytes)
  const bytes = Buffer.allocUnsafe(head.length + bodyBytes)
  bytes.write(head, 'latin1')
  if (typeof body === 'string') bytes.write(body, head.length)
  else bytes.set(body, head.length)
  return bytes
}

/**
 * The headers of a request by their names in lower case, but for those of the connection and the
 * body's length. Throws a plain error when one cannot be sent; its value, which may be a credential,
 * is not repeated.
 */
export function headersOf(target: Target, request: UpstreamHttpRequest): Map<string, string> {
  const headers = new Map([
    ['host', target.host],
    ['user-agent', userAgent],
  ])
  for (const [name, value] of Object.entries(request.headers)) {
    const key = name.toLowerCase()
    if (!isFieldName(key)) throw new Error('the name of a request header is not allowed')
    if (!isFieldValue(value)) throw new Error(`the request header ${key} has a forbidden character`)
    if (ownHeaders.has(key)) throw new Error(`the request header ${key} cannot be set`)
    headers.set(key, value)
  }
  return headers.set('accept-encoding', 'identity')
}

function renderHead(target: Target, request: UpstreamHttpRequest, bodyBytes: number): string {
  const headers = headersOf(target, request).set('connection', 'keep-alive')
  if (request.method === 'POST' || bodyBytes > 0) headers.set('content-length', String(bodyBytes))
  let head = `${request.method} ${target.pathAndQuery} HTTP/1.1\r\n`
  for (const [name, value] of headers) head += `${name}: ${value}\r\n`
  return `${head}\r\n`
}
