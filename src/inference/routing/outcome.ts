import type { AppError, ErrorKind } from '#lib/errors.ts'

/**
 * What a failed attempt says: about the upstream, about one of its models, that both are well since the
 * request was at fault, or nothing, as when the client disconnected.
 */
export type Blame = 'upstream' | 'model' | 'request' | 'nobody'

const blames: Partial<Record<ErrorKind, Blame>> = {
  upstream_unreachable: 'upstream',
  upstream_connect_timeout: 'upstream',
  upstream_error: 'model',
  upstream_refused: 'model',
  upstream_invalid_answer: 'model',
  upstream_truncated: 'model',
  upstream_overloaded: 'model',
  upstream_first_event_timeout: 'model',
  upstream_gap_timeout: 'model',
  rate_limit_exceeded: 'model',
  insufficient_quota: 'model',
  invalid_request: 'request',
  context_length_exceeded: 'request',
  request_too_large: 'request',
}

export function blameOf({ kind }: AppError): Blame {
  return blames[kind] ?? 'nobody'
}

const silences: ReadonlySet<ErrorKind> = new Set([
  'upstream_connect_timeout',
  'upstream_first_event_timeout',
  'upstream_gap_timeout',
])

/** Failures that took a deadline to notice. */
export function isSilence({ kind }: AppError): boolean {
  return silences.has(kind)
}

/** Whether the attempt cost the upstream nothing, since it never got the request. */
export function wasNotSent({ kind }: AppError): boolean {
  return kind === 'upstream_unreachable' || kind === 'upstream_connect_timeout'
}
