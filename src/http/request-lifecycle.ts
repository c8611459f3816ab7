import { Elysia } from 'elysia'
import type { Cors } from '#edges/cors.ts'
import { assert } from '#lib/assert.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { Exchange, type ExchangeObserver } from '#lib/exchange.ts'
import { readTraceContext, type TraceContext } from '#lib/trace.ts'
import type { Tracer } from '#telemetry/tracing/tracer.ts'
import { errorResponse } from './error-envelope.ts'
import { countUnmatched, type HttpMetrics } from './metrics.ts'
import { renderServerTiming, wantsServerTiming } from './server-timing.ts'
import { trackServer } from './track-server.ts'

/**
 * Begins the exchange of every request, refuses requests while draining, and turns errors into
 * responses. It is registered first, because hooks apply to later routes only.
 */
export function requestLifecycle(deps: {
  observer: ExchangeObserver
  newRequestId: () => string
  draining: () => boolean
  /** The methods that a path is served for; without it, every unknown endpoint is 404. */
  allowedMethods?: (path: string) => readonly string[]
  metrics?: HttpMetrics
  /** Of every response that has no others of these names. */
  securityHeaders?: Readonly<Record<string, string>>
  cors?: Cors | null
  /** Null: the trace of the client is passed on. */
  tracer?: Tracer | null
}) {
  const { cors = null, securityHeaders = {} } = deps
  const app = new Elysia({ name: 'request-lifecycle' })
  const serverOf = trackServer(app)
  return app
    .onRequest(({ request, set }) => {
      const requestId = deps.newRequestId()
      const path = pathOf(request.url)
      const { method } = request
      const settings: Settings = set
      settings.exchange = new Exchange(deps.observer, { requestId, method, path })
      settings.exchange.isProbe = probes.includes(path)
      settings.exchange.trace = traceOf(deps.tracer ?? null, settings.exchange, request.headers)
      const early =
        cors?.receive({ request, path, headers: set.headers, peers: serverOf() }) ?? null
      // Bun joins repeated headers; a repeated Host is an attempt at request smuggling.
      if (request.headers.get('host')?.includes(',')) {
        throw new AppError('invalid_request', 'The request has more than one Host header.')
      }
      if (deps.draining() && !settings.exchange.isProbe) {
        throw new AppError('draining', 'The server is shutting down.', { retryAfterS: 1 })
      }
      if (early === null) return undefined
      addMissing(settings.headers, { ...securityHeaders, 'x-request-id': requestId })
      settings.exchange.status = early.status
      settings.exchange.bytesOut = 0
      settings.exchange.end()
      return early
    })
    .onError(({ error, code, set, request, path }) => {
      const { method } = request
      const failure =
        code === 'NOT_FOUND'
          ? unknownEndpoint(method, path, deps.allowedMethods?.(path) ?? [])
          : fromFramework(error, code)
      const exchange = exchangeOf(set)
      const response = errorResponse(failure, { path, requestId: exchange.requestId })
      addMissing(set.headers, securityHeaders)
      exchange.error = failure
      exchange.status = response.status
      exchange.bytesOut = Number(response.headers.get('content-length') ?? 0)
      if (wantsServerTiming(request.headers)) {
        response.headers.set('server-timing', renderServerTiming(exchange))
      }
      exchange.end()
      if (exchange.meter !== null) exchange.meter.ended(response.status, exchange.receivedAtMs)
      else if (deps.metrics !== undefined) countUnmatched(deps.metrics, method, response.status)
      return response
    })
    .as('global')
}

function addMissing(
  headers: Record<string, unknown>,
  defaults: Readonly<Record<string, string>>,
): void {
  for (const name in defaults) headers[name] ??= defaults[name]
}

/** The trace of a request, and its first span if the trace is sampled. Probes have none. */
function traceOf(
  tracer: Tracer | null,
  { isProbe, method, path, receivedAtMs, requestId }: Exchange,
  headers: Headers,
): TraceContext | null {
  if (tracer === null || isProbe) return readTraceContext(headers)
  return tracer.accept(headers, method, () => ({
    kind: 'server',
    startedAtMs: receivedAtMs,
    attributes: {
      'http.request.method': method,
      'url.path': path,
      'sluice.request.id': requestId,
    },
  }))
}

/** Of orchestrators and of Prometheus. */
const probes = ['/livez', '/readyz', '/metrics']

/** Cheaper than a parsed URL, which every request would pay for. */
function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const query = url.indexOf('?', start)
  return query === -1 ? url.slice(start) : url.slice(start, query)
}

function unknownEndpoint(method: string, path: string, allowed: readonly string[]): AppError {
  // The headers of a HEAD request, `content-length` among them, are those of GET (RFC 9110, 9.3.2).
  const served = method === 'HEAD' ? 'GET' : method
  if (allowed.length === 0) {
    return new AppError('not_found', `No such endpoint: ${served} ${path}.`)
  }
  return new AppError(
    'method_not_allowed',
    `${path} does not support ${served}; use ${allowed.join(', ')}.`,
    { allowedMethods: allowed },
  )
}

/** Elysia's own error is an unreadable body. */
function fromFramework(error: unknown, code: string | number): AppError {
  if (error instanceof AppError) return error
  if (code === 'PARSE') {
    return new AppError('malformed_json', 'The request body is not valid JSON.', { cause: error })
  }
  return toAppError(error)
}

/** What a request takes along in Elysia's own object, which exists for each request anyway. */
type Settings = { readonly headers: Record<string, unknown>; exchange?: Exchange }

/** The exchange of the current request. */
export function exchangeOf(set: Settings): Exchange {
  assert(set.exchange, 'the request lifecycle comes first')
  return set.exchange
}
