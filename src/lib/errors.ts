import type { RateLimits } from './rate-limits.ts'
import { isDatabaseOutage } from './sql-state.ts'

/**
 * Every error that a caller may see: HTTP status, error type and, if it differs from the kind, the
 * code. Each surface renders an `AppError` in its own shape.
 */
const kinds = {
  // The caller's request
  invalid_request: { status: 400, type: 'invalid_request_error' },
  malformed_json: { status: 400, type: 'invalid_request_error' },
  user_message_missing: { status: 400, type: 'invalid_request_error' },
  invalid_encrypted_content: { status: 400, type: 'invalid_request_error' },
  tool_not_supported: { status: 400, type: 'invalid_request_error' },
  context_length_exceeded: { status: 400, type: 'invalid_request_error' },
  // A hook of the operator refused the request or the output.
  content_refused: { status: 400, type: 'invalid_request_error' },
  request_timeout: { status: 408, type: 'invalid_request_error' },
  method_not_allowed: { status: 405, type: 'invalid_request_error' },
  upgrade_required: { status: 426, type: 'invalid_request_error' },
  request_too_large: { status: 413, type: 'invalid_request_error' },
  unsupported_encoding: { status: 415, type: 'invalid_request_error' },
  unsupported_media_type: { status: 415, type: 'invalid_request_error' },
  unprocessable: { status: 422, type: 'invalid_request_error' },
  unknown_field: { status: 422, type: 'invalid_request_error' },
  removed_field: { status: 422, type: 'invalid_request_error' },
  model_mode_mismatch: { status: 400, type: 'invalid_request_error' },
  rerank_bad_request: { status: 400, type: 'invalid_request_error' },
  precondition_failed: { status: 412, type: 'invalid_request_error' },
  range_not_satisfiable: { status: 416, type: 'invalid_request_error' },
  // Authentication and authorisation
  missing_credentials: { status: 401, type: 'authentication_error' },
  invalid_api_key: { status: 401, type: 'authentication_error' },
  invalid_token: { status: 401, type: 'authentication_error' },
  invalid_session: { status: 401, type: 'authentication_error' },
  permission_denied: { status: 403, type: 'permission_error' },
  jwt_required: { status: 403, type: 'permission_error' },
  // Missing and conflicting resources
  not_found: { status: 404, type: 'not_found_error' },
  model_not_found: { status: 404, type: 'not_found_error' },
  conflict: { status: 409, type: 'invalid_request_error' },
  // The source of a model requires a credential that is not configured.
  source_auth_required: { status: 424, type: 'invalid_request_error' },
  gone: { status: 410, type: 'not_found_error' },
  // The gateway
  internal_error: { status: 500, type: 'server_error' },
  service_unavailable: { status: 503, type: 'server_error' },
  // A hook of the operator did not answer.
  content_check_failed: { status: 503, type: 'server_error' },
  draining: { status: 503, type: 'server_error' },
  worker_lost: { status: 500, type: 'server_error' },
  too_many_streams: { status: 503, type: 'server_error' },
  // The same to a client, but its connection is closed, because it uses a descriptor.
  no_descriptor_left: { status: 503, type: 'server_error', code: 'too_many_streams' },
  // No upstream of the model has capacity.
  queue_full: { status: 503, type: 'server_error' },
  queue_timeout: { status: 503, type: 'server_error' },
  insufficient_storage: { status: 507, type: 'server_error' },
  // A single request needs more than a limit allows: a retry cannot succeed.
  request_exceeds_limit: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  // The upstream
  rate_limit_exceeded: { status: 429, type: 'rate_limit_error' },
  insufficient_quota: { status: 429, type: 'insufficient_quota' },
  upstream_error: { status: 502, type: 'upstream_error' },
  upstream_refused: { status: 502, type: 'upstream_error' },
  upstream_unreachable: { status: 502, type: 'upstream_error' },
  upstream_invalid_answer: { status: 502, type: 'upstream_error' },
  upstream_truncated: { status: 502, type: 'upstream_error', code: 'server_error' },
  upstream_overloaded: { status: 503, type: 'upstream_error' },
  upstream_connect_timeout: { status: 504, type: 'upstream_error' },
  upstream_first_event_timeout: { status: 504, type: 'upstream_error' },
  upstream_gap_timeout: { status: 504, type: 'upstream_error' },
  upstream_total_timeout: { status: 504, type: 'upstream_error' },
  // The client disconnected; logged, never rendered
  client_closed: { status: 499, type: 'invalid_request_error' },
} satisfies Record<string, { status: number; type: string; code?: string }>

export type ErrorKind = keyof typeof kinds

export type ErrorDetails = {
  /** The path of the invalid request field: `input[2].content`. */
  param?: string
  /** A more precise code than the kind, such as that of an upstream. */
  code?: string
  /** Seconds after which a retry makes sense. */
  retryAfterS?: number
  /** The limits of a refused request, for its response headers. */
  rateLimits?: RateLimits
  /** The entity tag of the current version, after a failed `If-Match`. */
  etag?: string
  /** The methods of the path, after a request with another one. */
  allowedMethods?: readonly string[]
  /** The error response of an upstream, relayed to callers of the same protocol. */
  relay?: RelayedError
  cause?: unknown
}

/** Without credentials and addresses of the gateway; `status` is the HTTP status. */
export type RelayedError = {
  readonly status: number
  readonly body: string
  readonly contentType: string
}

/** The only error that is thrown on purpose. `message` is public, without secrets and addresses. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly kind: ErrorKind
  readonly status: number
  readonly type: string
  readonly wireCode: string
  readonly param: string | null
  readonly retryAfterS: number | undefined
  readonly rateLimits: RateLimits | undefined
  readonly etag: string | undefined
  readonly allowedMethods: readonly string[] | undefined
  readonly relay: RelayedError | undefined

  constructor(kind: ErrorKind, publicMessage: string, details: ErrorDetails = {}) {
    super(
      cut(publicMessage, messageCharsMax),
      details.cause === undefined ? undefined : { cause: details.cause },
    )
    const entry: { status: number; type: string; code?: string } = kinds[kind]
    this.kind = kind
    this.status = entry.status
    this.type = entry.type
    this.wireCode = details.code ?? entry.code ?? kind
    this.param = details.param === undefined ? null : cut(details.param, paramCharsMax)
    this.retryAfterS = details.retryAfterS
    this.rateLimits = details.rateLimits
    this.etag = details.etag
    this.allowedMethods = details.allowedMethods
    this.relay = details.relay
  }
}

/** Sentences quote ids and names of a request, which may have any length. */
const messageCharsMax = 1_500
const paramCharsMax = 256

function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax).toWellFormed()}…`
}

export function databaseUnavailable(cause: unknown): AppError {
  return new AppError('service_unavailable', 'The database is temporarily unavailable; retry.', {
    retryAfterS: 1,
    cause,
  })
}

/**
 * Any thrown value as an `AppError`: an outage of the database that no query runner met is a 503, an
 * unexpected error a generic 500.
 */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (isDatabaseOutage(error)) return databaseUnavailable(error)
  return new AppError('internal_error', 'The server failed to handle this request.', {
    cause: error,
  })
}
