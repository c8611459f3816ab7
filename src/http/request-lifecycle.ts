import { Elysia } from 'elysia'
import { AppError, toAppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { errorAnswer, isMessagesPath } from './error-envelope.ts'

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
      const requestId = deps.newRequestId()
      set.headers['x-request-id'] = requestId
      if (isMessagesPath(pathOf(request.url))) set.headers['request-id'] = requestId
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
      const answer = errorAnswer(failure, { path, requestId })
      const { status } = answer
      logFailure(deps.log, failure, { requestId, method: request.method, path, status })
      return answer
    })
    .as('global')
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
  request: { requestId: string; method: string; path: string; status?: number },
): void {
  const fields = {
    request_id: request.requestId,
    method: request.method,
    path: request.path,
    status: request.status ?? failure.status,
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
