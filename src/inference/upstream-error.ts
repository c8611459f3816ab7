import { AppError, type ErrorDetails, type ErrorKind, type RelayedError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import { redact } from '#telemetry/log.ts'
import type { Upstream } from './upstream.ts'

/** The words of an upstream are passed on up to here; a stack trace or a page is not wanted. */
const messageCharsMax = 500

/** Shorter values are words that may stand in any sentence. */
const secretCharsMin = 6

const contextOverflow =
  /context[_ ](length|window|size|limit)|maximum context|exceeds? the (available )?context|prompt is too long|too many tokens/i

/**
 * Takes out of a text what belongs to the gateway alone: the upstream's credential, the values of
 * its configured headers, and its address. Servers like to quote them in their errors.
 */
export function hideUpstream(text: string, upstream: Upstream): string {
  const { key = '', headers, baseUrl } = upstream
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).host : ''
  return [key, ...Object.values(headers), baseUrl, host]
    .filter((secret) => secret.length >= secretCharsMin)
    .reduce((hidden, secret) => hidden.replaceAll(secret, '[hidden]'), text)
}

/** A failure without what belongs to the gateway alone. */
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
 * What an HTTP answer other than 2xx means to our caller. A refusal of our own credential (401,
 * 403) is our fault and not the caller's; a refusal of the request (400, 413, 422) is passed on.
 */
export function errorFromStatus(
  status: number,
  body: string,
  {
    retryAfter = null,
    relay,
  }: { retryAfter?: string | null; relay?: RelayedError | undefined } = {},
): AppError {
  const said = readErrorBody(body)
  const retryAfterS = parseRetryAfter(retryAfter)
  const details: ErrorDetails = {
    ...(retryAfterS === null ? {} : { retryAfterS }),
    ...(relay === undefined ? {} : { relay }),
    cause: { status, body: body.slice(0, messageCharsMax) },
  }
  if (status === 413) return refusal({ ...said, type: 'request_too_large' }, details)
  if (status === 400 || status === 422) return refusal(said, details)
  if (status === 401 || status === 403) {
    return new AppError(
      'upstream_refused',
      'The upstream refused the credential of the gateway.',
      details,
    )
  }
  const kind =
    status === 402 || (status === 429 && isQuota(said))
      ? 'insufficient_quota'
      : kindOfStatus(status)
  return new AppError(kind, sentence(said.message, `answered ${status}`), details)
}

/** An `error` object inside a stream or a 200 answer; null where the payload is not one. */
export function errorFromPayload(payload: unknown): AppError | null {
  if (!isRecord(payload)) return null
  const isError =
    isRecord(payload['error']) ||
    typeof payload['error'] === 'string' ||
    payload['object'] === 'error' ||
    payload['type'] === 'error'
  if (!isError) return null
  const said = readError(payload)
  if (said.status !== null && said.status >= 400) {
    return errorFromStatus(said.status, JSON.stringify(payload))
  }
  if (isRefusal(said)) return refusal(said, {})
  return new AppError(
    kindOfWords(said),
    sentence(said.message, 'reported an error'),
    said.code === null ? {} : { code: said.code },
  )
}

/** Seconds (RFC 9110, 10.2.3); a date is not worth a clock here and counts as absent. */
function parseRetryAfter(header: string | null): number | null {
  const seconds = header === null ? Number.NaN : Number(header)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : null
}

function kindOfStatus(status: number): ErrorKind {
  if (status === 429) return 'rate_limit_exceeded'
  if (status === 503 || status === 529) return 'upstream_overloaded'
  if (status >= 500 || status === 408 || status === 409) return 'upstream_error'
  return 'upstream_refused'
}

function kindOfWords(said: ErrorWords): ErrorKind {
  if (isQuota(said)) return 'insufficient_quota'
  if (said.code === 'rate_limit_exceeded') return 'rate_limit_exceeded'
  return kindsOfTypes[said.type ?? ''] ?? 'upstream_error'
}

/** The types of the Messages protocol, one of which OpenAI uses as well. */
const kindsOfTypes: Readonly<Record<string, ErrorKind>> = {
  rate_limit_error: 'rate_limit_exceeded',
  overloaded_error: 'upstream_overloaded',
  authentication_error: 'upstream_refused',
  permission_error: 'upstream_refused',
  not_found_error: 'upstream_refused',
}

const quotaWords = ['insufficient_quota', 'billing_error']

/** A quota that is used up does not come back by waiting. */
function isQuota({ code, type }: ErrorWords): boolean {
  return quotaWords.includes(code ?? '') || quotaWords.includes(type ?? '')
}

function isRefusal({ code, type }: ErrorWords): boolean {
  if (type === 'request_too_large' || code === 'context_length_exceeded') return true
  return type === 'invalid_request_error'
}

function refusal(said: ErrorWords, details: ErrorDetails): AppError {
  const overflow =
    said.code === 'context_length_exceeded' || contextOverflow.test(said.message ?? '')
  const otherwise = said.type === 'request_too_large' ? 'request_too_large' : 'invalid_request'
  return new AppError(
    overflow ? 'context_length_exceeded' : otherwise,
    sentence(said.message, 'refused the request'),
    {
      ...details,
      ...(said.param === null ? {} : { param: said.param }),
      ...(said.code === null || overflow ? {} : { code: said.code }),
    },
  )
}

function sentence(message: string | null, otherwise: string): string {
  return message ? redact(message).slice(0, messageCharsMax) : `The upstream ${otherwise}.`
}

type ErrorWords = {
  message: string | null
  type: string | null
  code: string | null
  param: string | null
  status: number | null
}

function readErrorBody(body: string): ErrorWords {
  try {
    return readError(JSON.parse(body))
  } catch {
    return { message: null, type: null, code: null, param: null, status: null }
  }
}

/** The shapes in use: {error:{message}}, {error:"…"}, {message}, {detail} (FastAPI: text or list). */
function readError(payload: unknown): ErrorWords {
  const outer = isRecord(payload) ? payload : {}
  const inner = isRecord(outer['error']) ? outer['error'] : outer
  const word = (name: string) => (typeof inner[name] === 'string' ? inner[name] : null)
  const number = (value: unknown) => (typeof value === 'number' ? value : null)
  return {
    message:
      word('message') ??
      (typeof outer['error'] === 'string' ? outer['error'] : null) ??
      word('detail') ??
      readDetails(outer['detail']),
    type: word('type'),
    code: word('code') ?? readErrorCode(inner['details']),
    param: word('param'),
    status: number(inner['code']) ?? number(inner['status']),
  }
}

/** The Messages protocol has its codes there. */
function readErrorCode(details: unknown): string | null {
  const code = isRecord(details) ? details['error_code'] : undefined
  return typeof code === 'string' ? code : null
}

/** FastAPI's list of what is wrong: [{loc: ["body", "messages"], msg: "field required"}]. */
function readDetails(details: unknown): string | null {
  if (!Array.isArray(details)) return null
  const sentences = details.filter(isRecord).map(({ loc, msg }) => {
    const place = Array.isArray(loc) ? `${loc.join('.')}: ` : ''
    return `${place}${msg}`
  })
  return sentences.length === 0 ? null : sentences.join('; ')
}
