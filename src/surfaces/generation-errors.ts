import type { Errors } from '#api/endpoint.ts'

/** The errors of a generation before its first output, for the OpenAPI document. */
export const upstreamErrors: Errors = {
  rate_limit_exceeded:
    'The upstream returned status 429, a limit of the caller is reached, or too many calls of the key wait for the model.',
  request_exceeds_limit:
    'The limit of 1000 input tokens per minute of this user is reached; the request needs about 4000.',
  insufficient_quota: [
    'The upstream returned status 402.',
    {
      code: 'budget_exceeded',
      message:
        'The budget of 1000000 tokens per day of this user is used up; it resets at 2026-11-24T00:00:00Z.',
    },
  ],
  too_many_streams: 'The server runs too many generations; retry.',
  queue_full: 'Too many calls wait for the model.',
  queue_timeout: 'All upstreams of the model were busy for 60 s.',
  upstream_overloaded: 'The upstream returned status 503.',
  upstream_error: 'The upstream returned status 500.',
  upstream_refused: 'The upstream refused the credential of the gateway.',
  upstream_unreachable: 'The upstream could not be reached.',
  upstream_invalid_answer:
    'The upstream answered with something other than an event stream or JSON.',
  upstream_truncated: 'The upstream ended its response before it was complete.',
  upstream_connect_timeout: 'The upstream did not accept the connection in time.',
  upstream_first_event_timeout: 'The upstream sent no output within 300 s.',
  upstream_gap_timeout: 'The upstream sent nothing for 300 s in the middle of its response.',
  upstream_total_timeout: 'The generation took longer than 600 s.',
}

export const conversationFull = {
  code: 'conversation_full',
  message:
    'The conversation is full: it may hold 10000 items and 67108864 bytes. Delete items or start another conversation.',
} as const
