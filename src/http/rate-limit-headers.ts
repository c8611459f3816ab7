import { cachedLatest } from '#lib/cached-by-key.ts'
import type { RateLimit, RateLimits } from '#lib/rate-limits.ts'

type Headers = Record<string, string | number>

/** Adds the headers by which SDKs and clients pace themselves, in the form of the surface. */
export function setRateLimitHeaders(
  headers: Headers,
  limits: RateLimits | null,
  surface: 'responses' | 'messages',
): void {
  if (limits === null) return
  const { at, requests, inputTokens, outputTokens } = limits
  const tokens = tightest(inputTokens, outputTokens)
  if (surface === 'responses') {
    setResponses(headers, responsesNames.requests, requests)
    setResponses(headers, responsesNames.tokens, tokens)
    return
  }
  setMessages(headers, messagesNames.requests, requests, at)
  setMessages(headers, messagesNames.tokens, tokens, at)
  setMessages(headers, messagesNames.inputTokens, inputTokens, at)
  setMessages(headers, messagesNames.outputTokens, outputTokens, at)
}

type HeaderNames = { readonly limit: string; readonly remaining: string; readonly reset: string }

const responsesNames = {
  requests: namesOfResponses('requests'),
  tokens: namesOfResponses('tokens'),
}

const messagesNames = {
  requests: namesOfMessages('requests'),
  tokens: namesOfMessages('tokens'),
  inputTokens: namesOfMessages('input-tokens'),
  outputTokens: namesOfMessages('output-tokens'),
}

/** `x-ratelimit-limit-requests: 60`, `x-ratelimit-reset-requests: 1s`. */
function namesOfResponses(kind: string): HeaderNames {
  return {
    limit: `x-ratelimit-limit-${kind}`,
    remaining: `x-ratelimit-remaining-${kind}`,
    reset: `x-ratelimit-reset-${kind}`,
  }
}

/** `anthropic-ratelimit-requests-limit: 60`, `anthropic-ratelimit-requests-reset` in RFC 3339. */
function namesOfMessages(kind: string): HeaderNames {
  return {
    limit: `anthropic-ratelimit-${kind}-limit`,
    remaining: `anthropic-ratelimit-${kind}-remaining`,
    reset: `anthropic-ratelimit-${kind}-reset`,
  }
}

function setResponses(headers: Headers, names: HeaderNames, limit: RateLimit | null): void {
  if (limit === null) return
  headers[names.limit] = limit.limit
  headers[names.remaining] = limit.remaining
  headers[names.reset] = renderDuration(limit.resetS)
}

function setMessages(
  headers: Headers,
  names: HeaderNames,
  limit: RateLimit | null,
  at: Date,
): void {
  if (limit === null) return
  headers[names.limit] = limit.limit
  headers[names.remaining] = limit.remaining
  headers[names.reset] = renderInstant(at, limit.resetS)
}

/** The one with the smaller share left: clients know one number of tokens. */
function tightest(a: RateLimit | null, b: RateLimit | null): RateLimit | null {
  if (a === null || b === null) return a ?? b
  return b.remaining * a.limit < a.remaining * b.limit ? b : a
}

const minuteS = 60
const hourS = 3_600

/** `20ms`, `1s`, `6m0s`, `1h0m5s`; rounded up. */
function renderDuration(seconds: number): string {
  const ms = Math.ceil(seconds * 1_000)
  if (ms < 1_000) return `${ms}ms`
  const whole = Math.ceil(seconds)
  if (whole < minuteS) return `${whole}s`
  const rest = `${Math.floor((whole % hourS) / minuteS)}m${whole % minuteS}s`
  return whole < hourS ? rest : `${Math.floor(whole / hourS)}h${rest}`
}

/** Responses of the same second name mostly the same instants. */
const instantsMax = 64
const renderSecond = cachedLatest(instantsMax, (atS: number) =>
  new Date(atS * 1_000).toISOString().replace('.000Z', 'Z'),
)

/** Without milliseconds; rounded up. */
function renderInstant(at: Date, inS: number): string {
  return renderSecond(Math.ceil(at.getTime() / 1_000 + inS))
}
