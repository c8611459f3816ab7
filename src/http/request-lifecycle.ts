import { Elysia } from 'elysia'
import { AppError, toAppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'

/**
 * Everything that concerns each request and no feature: its id, its log line, and the one place
 * where errors become answers. It is registered first, because hooks hold only for later routes.
 */
export function requestLifecycle(deps: {
  log: Log
  newRequestId: () => string
  draining: () => boolean
}) {
  return new Elysia({ name: 'request-lifecycle' })
    .onRequest(({ request, set }) => {
      set.headers['x-request-id'] = deps.newRequestId()
      // Bun joins repeated headers; a Host that is given twice is an attempt to confuse someone.
      if (request.headers.get('host')?.includes(',')) {
        throw new AppError('invalid_request', 'The request has more than one Host header.')
      }
      if (deps.draining() && !isProbe(request.url)) {
        throw new AppError('draining', 'The server is shutting down.', { retryAfterS: 1 })
      }
    })
    .onError(({ error, code, set, request, path }) => {
      const failure = fromFramework(error, code, path)
      const requestId = requestIdOf(set)
      logFailure(deps.log, failure, { requestId, method: request.method, path })
      return Response.json(renderError(failure), {
        status: failure.status,
        headers: { ...errorHeaders(failure), 'x-request-id': requestId },
      })
    })
    .as('global')
}

function isProbe(url: string): boolean {
  const { pathname } = new URL(url)
  return pathname === '/livez' || pathname === '/readyz'
}

/** The error body of everything under /v1: `{error: {message, type, param, code}}`. */
export function renderError({ message, type, param, wireCode }: AppError) {
  return { error: { message, type, param, code: wireCode } }
}

/**
 * SDKs repeat 408, 409, 429 and 5xx by themselves unless told otherwise. What the gateway already
 * tried again, or what took long to fail, must not be multiplied by them.
 */
function errorHeaders(error: AppError): Record<string, string> {
  const headers: Record<string, string> = {}
  if (error.retryAfterS !== undefined) headers['retry-after'] = String(Math.ceil(error.retryAfterS))
  // A connection that is kept would bring the next request here again.
  if (error.kind === 'draining') headers['connection'] = 'close'
  if (error.status === 401) headers['www-authenticate'] = 'Bearer'
  if (error.kind === 'upgrade_required') headers['upgrade'] = 'websocket'
  if (error.status === 429 || error.status >= 500) {
    headers['x-should-retry'] = String(error.kind === 'rate_limit_exceeded' || error.status === 503)
  }
  return headers
}

/** Elysia's own failures: an unknown path, an unreadable body, a broken schema. */
function fromFramework(error: unknown, code: string | number, path: string): AppError {
  if (error instanceof AppError) return error
  if (code === 'NOT_FOUND') return new AppError('not_found', `There is nothing at ${path}.`)
  if (code === 'PARSE') {
    return new AppError('malformed_json', 'The request body is not valid JSON.', { cause: error })
  }
  if (code === 'VALIDATION') {
    return new AppError('unprocessable', 'The request does not have the right form.', {
      cause: error,
    })
  }
  return toAppError(error)
}

export function logFailure(
  log: Log,
  failure: AppError,
  request: { requestId: string; method: string; path: string },
): void {
  const fields = {
    request_id: request.requestId,
    method: request.method,
    path: request.path,
    status: failure.status,
    kind: failure.kind,
    reason: failure.message,
  }
  if (failure.status >= 500) log.error('request failed', { ...fields, cause: failure.cause })
  else log.info('request refused', fields)
}

/** The id of the request that is being answered; a client finds it in `x-request-id`. */
export function requestIdOf(set: { headers: Record<string, unknown> }): string {
  return String(set.headers['x-request-id'] ?? '')
}
