import { Elysia } from 'elysia'
import type { Cors } from '#edges/cors.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { type RequestFacts, requestFields } from '#lib/request-context.ts'
import type { Log } from '#telemetry/log.ts'
import { errorResponse, isMessagesPath } from './error-envelope.ts'
import { countUnmatched, type HttpMetrics, type RouteMetrics } from './metrics.ts'

/**
 * Gives every request its id, refuses requests while draining, and turns errors into responses and
 * log lines. It is registered first, because hooks apply to later routes only.
 */
export function requestLifecycle(deps: {
  log: Log
  newRequestId: () => string
  draining: () => boolean
  /** The methods that a path is served for; without it, every unknown endpoint is 404. */
  allowedMethods?: (path: string) => readonly string[]
  metrics?: HttpMetrics
  /** Of every response that has no others of these names. */
  securityHeaders?: Readonly<Record<string, string>>
  cors?: Cors | null
}) {
  const { cors = null, securityHeaders = {} } = deps
  return new Elysia({ name: 'request-lifecycle' })
    .headers(securityHeaders)
    .onRequest(({ request, set, server }) => {
      const requestId = deps.newRequestId()
      set.headers['x-request-id'] = requestId
      if (isMessagesPath(pathOf(request.url))) set.headers['request-id'] = requestId
      const early =
        cors?.receive({
          request,
          path: pathOf(request.url),
          headers: set.headers,
          peers: server,
        }) ?? null
      // Bun joins repeated headers; a repeated Host is an attempt at request smuggling.
      if (request.headers.get('host')?.includes(',')) {
        throw new AppError('invalid_request', 'The request has more than one Host header.')
      }
      if (deps.draining() && !isProbe(request.url)) {
        throw new AppError('draining', 'The server is shutting down.', { retryAfterS: 1 })
      }
      return early ?? undefined
    })
    .onError(({ error, code, set, request, path }) => {
      const { method } = request
      const failure =
        code === 'NOT_FOUND'
          ? unknownEndpoint(method, path, deps.allowedMethods?.(path) ?? [])
          : fromFramework(error, code)
      const requestId = requestIdOf(set)
      const response = errorResponse(failure, { path, requestId })
      const failed = failedRequests.get(request)
      const context = failed?.context ?? { requestId }
      logFailure(deps.log, failure, { context, method, path, status: response.status })
      if (failed !== undefined) failed.route?.ended(response.status, failed.receivedAtMs)
      else if (deps.metrics !== undefined) countUnmatched(deps.metrics, method, response.status)
      return response
    })
    .as('global')
}

type FailedRequest = {
  /** Null before the request was authorised. */
  readonly context: RequestFacts | null
  readonly route: RouteMetrics | null
  readonly receivedAtMs: number
}

/** What Elysia's error handler cannot see otherwise. Written only when a request fails. */
const failedRequests = new WeakMap<Request, FailedRequest>()

/** Makes the error handler log who sent a request that failed, and count it for its route. */
export function noteFailedRequest(request: Request, failed: FailedRequest): void {
  failedRequests.set(request, failed)
}

function isProbe(url: string): boolean {
  const path = pathOf(url)
  return path === '/livez' || path === '/readyz' || path === '/metrics'
}

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

export function logFailure(
  log: Log,
  failure: AppError,
  request: { context: RequestFacts; method: string; path: string; status?: number },
): void {
  const fields = {
    ...requestFields(request.context),
    method: request.method,
    path: request.path,
    status: request.status ?? failure.status,
    kind: failure.kind,
    reason: failure.message,
  }
  if (failure.status >= 500) log.error('request failed', { ...fields, cause: failure.cause })
  else log.info('request refused', fields)
}

/** The id of the current request, as the client finds it in `x-request-id`. */
export function requestIdOf(set: { headers: Record<string, unknown> }): string {
  return String(set.headers['x-request-id'] ?? '')
}
