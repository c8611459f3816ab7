import { entityTag } from '#lib/entity-tag.ts'
import type { AppError, ErrorKind } from '#lib/errors.ts'
import { setRateLimitHeaders } from './rate-limit-headers.ts'

/** The HTTP response of an error; under /compat in the shape of the Messages API. */
export function errorResponse(
  error: AppError,
  { path, requestId }: { path: string; requestId: string },
): Response {
  const headers = { ...errorHeaders(error), 'x-request-id': requestId }
  if (isListenPath(path)) {
    const body = { ...renderListenError(error), request_id: requestId }
    return jsonResponse(body, error.status, { ...headers, 'dg-error': toHeader(error.message) })
  }
  const isMessages = isMessagesPath(path)
  setRateLimitHeaders(headers, error.rateLimits ?? null, isMessages ? 'messages' : 'responses')
  if (!isMessages) {
    return jsonResponse(renderError(error), error.status, headers)
  }
  const own = { ...headers, 'request-id': requestId }
  const { relay } = error
  if (relay !== undefined) {
    const type = { 'content-type': relay.contentType }
    return textResponse(relay.body, relay.status, { ...own, ...type })
  }
  const body = { ...renderMessagesError(error), request_id: requestId }
  return jsonResponse(body, statusForMessages(error), own)
}

/** Whether the clients of a path expect errors in the shape of Deepgram. */
export function isListenPath(path: string): boolean {
  return path === '/v1/listen'
}

export function renderListenError({ message, wireCode }: AppError) {
  return { err_code: wireCode, err_msg: message }
}

/** Headers have no characters beyond Latin-1. */
function toHeader(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?')
}

function jsonResponse(body: unknown, status: number, headers: Record<string, string>): Response {
  return textResponse(JSON.stringify(body), status, { ...headers, 'content-type': jsonType })
}

/** With its length, which the log line contains. */
function textResponse(body: string, status: number, headers: Record<string, string>): Response {
  const length = { 'content-length': String(Buffer.byteLength(body)) }
  return new Response(body, { status, headers: { ...headers, ...length } })
}

export const jsonType = 'application/json;charset=utf-8'

/** Whether a path belongs to the Messages surface. */
export function isMessagesPath(path: string): boolean {
  return path === '/compat' || path.startsWith('/compat/')
}

/** The error body of everything under /v1: `{error: {message, type, param, code}}`. */
export function renderError({ message, type, param, wireCode }: AppError) {
  return { error: { message, type, param, code: wireCode } }
}

/**
 * The error object of everything under /compat, in a response and in a stream. The type is one of
 * the Messages API; the code is ours.
 */
export function renderMessagesError(error: AppError) {
  return {
    type: 'error' as const,
    error: {
      type: typeForMessages(error),
      message: messageForMessages(error),
      details: { error_code: error.wireCode },
    },
  }
}

function errorHeaders(error: AppError): Record<string, string> {
  const headers: Record<string, string> = {}
  if (error.retryAfterS !== undefined) headers['retry-after'] = String(Math.ceil(error.retryAfterS))
  // A kept connection would bring the next request to this worker, or use a descriptor.
  if (error.kind === 'draining' || error.kind === 'no_descriptor_left') {
    headers['connection'] = 'close'
  }
  // The client knows what to read before it retries.
  if (error.etag !== undefined) headers['etag'] = entityTag(error.etag)
  if (error.status === 401) headers['www-authenticate'] = 'Bearer'
  if (error.kind === 'upgrade_required') headers['upgrade'] = 'websocket'
  if (error.allowedMethods !== undefined) headers['allow'] = error.allowedMethods.join(', ')
  headers['x-should-retry'] = String(isRetryable(error))
  return headers
}

/**
 * SDKs retry 408, 409, 429 and 5xx unless `x-should-retry` is false. Requests that the gateway has
 * retried itself, that failed slowly, or that would fail again must not be multiplied.
 */
function isRetryable({ kind, status, retryAfterS }: AppError): boolean {
  if (status === 503 || kind === 'rate_limit_exceeded' || kind === 'request_timeout') return true
  return kind === 'conflict' && retryAfterS !== undefined
}

const overloads: ReadonlySet<ErrorKind> = new Set([
  'upstream_overloaded',
  'too_many_streams',
  'no_descriptor_left',
  'queue_full',
  'queue_timeout',
])

/** The Messages API has its own statuses for overload and exhausted credit. */
export function statusForMessages({ kind, status }: AppError): number {
  if (overloads.has(kind)) return 529
  return kind === 'insufficient_quota' ? 402 : status
}

function typeForMessages({ kind, status }: AppError): string {
  if (kind === 'insufficient_quota') return 'billing_error'
  switch (status) {
    case 401:
      return 'authentication_error'
    case 403:
      return 'permission_error'
    case 404:
      return 'not_found_error'
    case 409:
      return 'conflict_error'
    case 413:
      return 'request_too_large'
    case 429:
      return 'rate_limit_error'
    case 503:
      return 'overloaded_error'
    case 504:
      return 'timeout_error'
    default:
      return status >= 500 ? 'api_error' : 'invalid_request_error'
  }
}

/** Clients compact a full context only if the error contains exactly this phrase. */
const overflowPhrase = 'prompt is too long'

function messageForMessages({ kind, message }: AppError): string {
  if (kind !== 'context_length_exceeded' || message.includes(overflowPhrase)) return message
  const sizes = readSizes(message)
  if (sizes === null) return `${overflowPhrase}: ${message}`
  return `${overflowPhrase}: ${sizes.tokens} tokens > ${sizes.maximum} maximum`
}

const sizeOfPrompt =
  /(?:requested|resulted in|passed|prompt \(length|request \(|prompt (?:has|contains)|input (?:has|contains|length is))\D{0,20}(\d[\d,]*)/i
const sizeOfContext = /(?:context|model) (?:length|size|window)\D{0,20}(\d[\d,]*)/i

/** The prompt size and the context size, if the upstream's message has both. */
function readSizes(message: string): { tokens: number; maximum: number } | null {
  const read = (pattern: RegExp) => Number(pattern.exec(message)?.[1]?.replaceAll(',', ''))
  const tokens = read(sizeOfPrompt)
  const maximum = read(sizeOfContext)
  return tokens > maximum ? { tokens, maximum } : null
}
