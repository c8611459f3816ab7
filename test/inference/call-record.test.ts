import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { failureOf } from '#inference/attempt.ts'
import { OpenCall } from '#inference/open-call.ts'
import { AppError } from '#lib/errors.ts'
import { makeRequestContext } from '#test/support/generation.ts'

beforeEach(() => {
  jest.useFakeTimers()
  // A clock at zero could not tell a duration from an instant.
  jest.advanceTimersByTime(5_000)
})
afterEach(() => {
  jest.useRealTimers()
})

describe('the record', () => {
  const usage = {
    inputTokens: 1,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 2,
    reasoningTokens: 0,
    totalTokens: 3,
  }
  const open = () =>
    new OpenCall('embed', 'asked-name', { context: makeRequestContext(), targets: [] })
  const failed = new AppError('upstream_error', 'It failed.')

  test('has the time of the first output and of the end', () => {
    const call = open()
    jest.advanceTimersByTime(100)
    call.begin()
    jest.advanceTimersByTime(100)
    call.complete(usage)
    jest.advanceTimersByTime(100)
    expect(call.close()).toMatchObject({
      firstEventMs: 100,
      durationMs: 300,
      outcome: 'completed',
      usage,
      error: null,
    })
  })

  test('is cancelled until it ends otherwise', () => {
    expect(open().close()).toMatchObject({ outcome: 'cancelled', firstEventMs: null })
  })

  test('of a failure has its error', () => {
    const call = open()
    expect(call.fail(failed)).toBe(failed)
    expect(call.close()).toMatchObject({ outcome: 'failed', error: failed })
  })

  test('of a client that disconnected is cancelled, not failed', () => {
    const call = open()
    expect(call.fail(new DOMException('gone', 'AbortError')).kind).toBe('client_closed')
    expect(call.close()).toMatchObject({ outcome: 'cancelled', error: { kind: 'client_closed' } })
  })

  test('of a completed call stays completed', () => {
    const call = open()
    call.complete(usage)
    call.fail(failed)
    expect(call.close()).toMatchObject({ outcome: 'completed', usage })
  })
})

test('only an AbortError is a client that disconnected', () => {
  expect(failureOf(new DOMException('x', 'AbortError')).kind).toBe('client_closed')
  expect(failureOf(new DOMException('x', 'TimeoutError')).kind).toBe('internal_error')
  expect(failureOf(new AppError('gone', 'x')).kind).toBe('gone')
})
