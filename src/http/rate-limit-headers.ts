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
  const set = surface === 'messages' ? setMessages : setResponses
  set(headers, 'requests', requests, at)
  set(headers, 'tokens', tokens, at)
  if (surface === 'responses') return
  set(headers, 'input-tokens', inputTokens, at)
  set(headers, 'output-tokens', outputTokens, at)
}

/** `x-ratelimit-limit-requests: 60`, `x-ratelimit-reset-requests: 1s`. */
function setResponses(headers: Headers, kind: string, limit: RateLimit | null): void {
  if (limit === null) return
  headers[`x-ratelimit-limit-${kind}`] = limit.limit
  headers[`x-ratelimit-remaining-${kind}`] = limit.remaining
  headers[`x-ratelimit-reset-${kind}`] = renderDuration(limit.resetS)
}

/** `anthropic-ratelimit-requests-limit: 60`, `anthropic-ratelimit-requests-reset` in RFC 3339. */
function setMessages(headers: Headers, kind: string, limit: RateLimit | null, at: Date): void {
  if (limit === null) return
  headers[`anthropic-ratelimit-${kind}-limit`] = limit.limit
  headers[`anthropic-ratelimit-${kind}-remaining`] = limit.remaining
  headers[`anthropic-ratelimit-${kind}-reset`] = renderInstant(at, limit.resetS)
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

/** Without milliseconds; rounded up. */
function renderInstant(at: Date, inS: number): string {
  const atS = Math.ceil(at.getTime() / 1_000 + inS)
  return new Date(atS * 1_000).toISOString().replace('.000Z', 'Z')
}
