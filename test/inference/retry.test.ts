import { expect, test } from 'bun:test'
import { pauseBeforeRetryMs } from '#inference/retry.ts'
import { AppError, type ErrorKind } from '#lib/errors.ts'

const policy = { retriesMax: 2, backoffMs: 100, retryAfterMaxMs: 5_000 }

function pause(
  kind: ErrorKind,
  given: { retries?: number; untried?: boolean; afterS?: number } = {},
) {
  const { retries = 0, untried = false, afterS } = given
  const error = new AppError(kind, 'x', afterS === undefined ? {} : { retryAfterS: afterS })
  return pauseBeforeRetryMs(error, retries, { ...policy, untriedUpstream: untried })
}

const transient: readonly ErrorKind[] = [
  'rate_limit_exceeded',
  'upstream_error',
  'upstream_unreachable',
  'upstream_truncated',
  'upstream_overloaded',
  'upstream_connect_timeout',
]
const permanent: readonly ErrorKind[] = [
  'upstream_refused',
  'insufficient_quota',
  'upstream_invalid_answer',
  'upstream_first_event_timeout',
  'context_length_exceeded',
]
const final: readonly ErrorKind[] = ['invalid_request', 'client_closed', 'upstream_gap_timeout']

test.each(transient)('%s is tried again, elsewhere at once', (kind) => {
  expect(pause(kind)).toBeWithin(50, 100.1)
  expect(pause(kind, { untried: true })).toBe(0)
})

test.each(permanent)('%s is tried elsewhere only', (kind) => {
  expect(pause(kind)).toBeNull()
  expect(pause(kind, { untried: true })).toBe(0)
})

test.each(final)('%s is not tried again', (kind) => {
  expect(pause(kind)).toBeNull()
  expect(pause(kind, { untried: true })).toBeNull()
})

test('the pause doubles, until there are no more attempts', () => {
  expect(pause('upstream_error', { retries: 1 })).toBeWithin(100, 200.1)
  expect(pause('upstream_error', { retries: 2 })).toBeNull()
  expect(pause('upstream_error', { retries: 2, untried: true })).toBeNull()
})

test('a longer pause that the upstream asks for is kept, up to the limit', () => {
  expect(pause('upstream_error', { afterS: 1 })).toBe(1_000)
  expect(pause('upstream_error', { afterS: 0.001 })).toBeWithin(50, 100.1)
  expect(pause('upstream_error', { afterS: 5 })).toBe(5_000)
  expect(pause('upstream_error', { afterS: 5.001 })).toBeNull()
  expect(pause('upstream_error', { afterS: 60, untried: true })).toBe(0)
})
