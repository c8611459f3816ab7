import { AppError, type ErrorDetails, type ErrorKind, type RelayedError } from '#lib/errors.ts'
import { asRecord, isRecord, parseJson } from '#lib/json.ts'
import { redact } from '#telemetry/log.ts'
import type { Upstream } from './upstream.ts'
import { readNumber } from './upstream-fields.ts'

/** Upstream messages are truncated: some are stack traces or HTML pages. */
const messageCharsMax = 500

/** Shorter values may be ordinary words. */
const secretCharsMin = 6

const contextOverflow =
  /context[_ ](length|window|size|limit)|maximum context|exceeds? the (available )?context|prompt is too long|too many tokens/i

/**
 * Redacts the upstream's credential, configured header values and address in a text: servers quote them
 * in error messages.
 */
export function hideUpstream(text: string, upstream: Upstream): string {
  const { key = '', headers, baseUrl } = upstream
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).host : ''
  return [key, ...Object.values(headers), baseUrl, host]
    .filter((secret) => secret.length >= secretCharsMin)
    .reduce((hidden, secret) => hidden.replaceAll(secret, '[hidden]'), text)
}

/** Applies `hideUpstream` to an error. */
export function hideUpstreamIn(error: unknown, upstream: Upstream): unknown {
  if (!(error instanceof AppError)) return error
  const message = hideUpstream(error.message, upstream)
  const { cause, kind, param, relay, retryAfterS, wireCode } = error
  const body = relay === undefined ? undefined : hideUpstream(relay.body, upstream)
  if (message === error.message && body === relay?.body) return error
  return new AppError(kind, message, {
    code: wireCode,
    ...(param === null ? {} : { param }),
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
    ...(relay === undefined || body === undefined ? {} : { relay: { ...relay, body } }),
    cause,
  })
}

/**
 * The error for a status other than 2xx. A refusal of the gateway's credential (401, 403) is not the
 * client's fault; a refusal of the request (400, 413, 422) is passed on.
 */
export function errorFromStatus(
  status: number,
  body: string,
  {
    retryAfter = null,
    relay,
  }: { retryAfter?: string | null; relay?: RelayedError | undefined } = {},
): AppError {
  const fields = readError(parseJson(body))
  const retryAfterS = parseRetryAfter(retryAfter)
  const details: ErrorDetails = {
    ...(retryAfterS === null ? {} : { retryAfterS }),
    ...(relay === undefined ? {} : { relay }),
    cause: { status, body: body.slice(0, messageCharsMax) },
  }
  if (status === 413) return refusal({ ...fields, type: 'request_too_large' }, details)
  if (status === 400 || status === 422) return refusal(fields, details)
  if (status === 401 || status === 403) {
    return new AppError(
      'upstream_refused',
      'The upstream refused the credential of the gateway.',
      details,
    )
  }
  const kind =
    status === 402 || (status === 429 && isQuota(fields))
      ? 'insufficient_quota'
      : kindOfStatus(status)
  return new AppError(kind, messageOf(fields.message, `returned status ${status}`), details)
}

/** The error in a stream event or a 200 response; null if the payload is not an error. */
export function errorFromPayload(payload: unknown): AppError | null {
  if (!isRecord(payload)) return null
  const isError =
    isRecord(payload['error']) ||
    typeof payload['error'] === 'string' ||
    payload['object'] === 'error' ||
    payload['type'] === 'error'
  if (!isError) return null
  const fields = readError(payload)
  if (fields.status !== null && fields.status >= 400) {
    return errorFromStatus(fields.status, JSON.stringify(payload))
  }
  if (isRefusal(fields)) return refusal(fields, {})
  return new AppError(
    kindOfFields(fields),
    messageOf(fields.message, 'reported an error'),
    fields.code === null ? {} : { code: fields.code },
  )
}

/** Seconds (RFC 9110, 10.2.3); the date format is not supported and counts as absent. */
function parseRetryAfter(header: string | null): number | null {
  const seconds = header === null ? Number.NaN : Number(header)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : null
}

function kindOfStatus(status: number): ErrorKind {
  if (status === 429) return 'rate_limit_exceeded'
  if (status === 503 || status === 529) return 'upstream_overloaded'
  if (status >= 500 || [408, 409, 425].includes(status)) return 'upstream_error'
  return 'upstream_refused'
}

function kindOfFields(fields: UpstreamErrorFields): ErrorKind {
  if (isQuota(fields)) return 'insufficient_quota'
  if (fields.code === 'rate_limit_exceeded') return 'rate_limit_exceeded'
  return kindsByType[fields.type ?? ''] ?? 'upstream_error'
}

/** The error types of the Messages protocol; OpenAI uses one of them. */
const kindsByType: Readonly<Record<string, ErrorKind>> = {
  rate_limit_error: 'rate_limit_exceeded',
  overloaded_error: 'upstream_overloaded',
  authentication_error: 'upstream_refused',
  permission_error: 'upstream_refused',
  not_found_error: 'upstream_refused',
}

const quotaCodes = ['insufficient_quota', 'billing_error']

/** Waiting does not restore an exhausted quota. */
function isQuota({ code, type }: UpstreamErrorFields): boolean {
  return quotaCodes.includes(code ?? '') || quotaCodes.includes(type ?? '')
}

function isRefusal({ code, type }: UpstreamErrorFields): boolean {
  if (type === 'request_too_large' || code === 'context_length_exceeded') return true
  return type === 'invalid_request_error'
}

function refusal(fields: UpstreamErrorFields, details: ErrorDetails): AppError {
  const overflow =
    fields.code === 'context_length_exceeded' || contextOverflow.test(fields.message ?? '')
  const otherwise = fields.type === 'request_too_large' ? 'request_too_large' : 'invalid_request'
  return new AppError(
    overflow ? 'context_length_exceeded' : otherwise,
    messageOf(fields.message, 'refused the request'),
    {
      ...details,
      ...(fields.param === null ? {} : { param: fields.param }),
      ...(fields.code === null || overflow ? {} : { code: fields.code }),
    },
  )
}

function messageOf(message: string | null, fallback: string): string {
  return message ? redact(message).slice(0, messageCharsMax) : `The upstream ${fallback}.`
}

type UpstreamErrorFields = {
  message: string | null
  type: string | null
  code: string | null
  param: string | null
  status: number | null
}

/** Known formats: {error:{message}}, {error:"…"}, {message}, {detail} (FastAPI: text or list). */
function readError(payload: unknown): UpstreamErrorFields {
  const outer = asRecord(payload)
  const inner = isRecord(outer['error']) ? outer['error'] : outer
  const text = (value: unknown) => (typeof value === 'string' ? value : null)
  return {
    message:
      text(inner['message']) ??
      text(outer['error']) ??
      text(inner['detail']) ??
      readDetails(outer['detail']),
    type: text(inner['type']),
    // In the Messages protocol, the code is one of the details.
    code: text(inner['code']) ?? text(asRecord(inner['details'])['error_code']),
    param: text(inner['param']),
    status: readNumber(inner['code']) ?? readNumber(inner['status']),
  }
}

/** FastAPI's validation errors: [{loc: ["body", "messages"], msg: "field required"}]. */
function readDetails(details: unknown): string | null {
  if (!Array.isArray(details)) return null
  const sentences = details.filter(isRecord).map(({ loc, msg }) => {
    const path = Array.isArray(loc) ? `${loc.join('.')}: ` : ''
    return `${path}${msg}`
  })
  return sentences.length === 0 ? null : sentences.join('; ')
}

/** Everything that an upstream said when it refused a request. */
export function refusalText({ message, cause }: AppError): string {
  return `${message} ${JSON.stringify(cause ?? '')}`
}
