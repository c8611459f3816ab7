import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { OpenCall } from '#inference/open-call.ts'
import type { RetryPolicy } from '#inference/retry.ts'
import { createRouter } from '#inference/routing/router.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError, type ErrorKind } from '#lib/errors.ts'
import { adaptersWithoutModels } from '#test/support/adapters.ts'
import { makeRequestContext } from '#test/support/generation.ts'
import { target } from '#test/support/generations.ts'
import { runPendingPromises } from '#test/support/pending-promises.ts'
import { openTransport } from '#test/support/transport.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const patient: RetryPolicy = { retriesMax: 3, backoffMs: 1_000, retryAfterMaxMs: 60_000 }

const deps = {
  adapters: adaptersWithoutModels,
  transport: openTransport(),
  limits: {
    eventBytesMax: 1,
    toolArgumentCharsMax: 1,
    streamsMax: 1,
    outputCharsMax: 1,
  },
  deadlines: { firstEventMs: 1, gapMs: 1, totalMs: 1 },
  retry: patient,
  onSettled() {},
}

type Given = {
  upstreams?: readonly string[]
  retry?: Partial<RetryPolicy>
  /** One for each attempt, the last one for all further ones; null succeeds. */
  outcomes: readonly (Error | 'hang' | null)[]
}

/** A call whose attempts end as scripted, and when each of them began. */
function startCall(given: Given) {
  const { upstreams = ['only'], outcomes } = given
  const source = new AbortController()
  const call = new OpenCall('embed', 'asked-name', {
    context: makeRequestContext(source.signal),
    targets: upstreams.map((name) => target(`http://${name}.test/v1`, name)),
  })
  const startedMs = performance.now()
  const attempts: { name: string; atMs: number; signal: CancelSignal }[] = []
  const attempting = call.attempt(
    { ...deps, router: createRouter() },
    {
      retry: { ...patient, ...given.retry },
      limitMs: 60_000,
      streamed: true,
    },
    async (_adapter, { upstream, signal }) => {
      const outcome = outcomes[Math.min(attempts.length, outcomes.length - 1)]
      attempts.push({ name: upstream.name, atMs: performance.now() - startedMs, signal })
      if (outcome === 'hang') {
        return new Promise<string>((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        })
      }
      if (outcome) throw outcome
      return 'result'
    },
  )
  const result = attempting.then(
    (success) => success,
    (error: unknown) => error,
  )
  return { call, source, attempts, result, names: () => attempts.map(({ name }) => name) }
}

async function advance(ms: number): Promise<void> {
  await runPendingPromises()
  for (let passedMs = 0; passedMs < ms; passedMs += 100) {
    jest.advanceTimersByTime(100)
    await runPendingPromises()
  }
}

const failing = (kind: ErrorKind, retryAfterS?: number) =>
  new AppError(kind, 'It failed.', retryAfterS === undefined ? {} : { retryAfterS })

describe('retries', () => {
  test('the pauses double, with jitter from half of each', async () => {
    const { attempts, result } = startCall({ outcomes: [failing('upstream_error')] })
    await advance(20_000)
    expect(await result).toMatchObject({ kind: 'upstream_error' })
    const pauses = attempts.slice(1).map(({ atMs }, index) => atMs - (attempts[index]?.atMs ?? 0))
    expect(pauses).toHaveLength(3)
    for (const [index, pauseMs] of pauses.entries()) {
      const fullMs = 1_000 * 2 ** index
      expect(pauseMs).toBeGreaterThanOrEqual(fullMs / 2)
      // The clock of this test advances in steps of 100 ms.
      expect(pauseMs).toBeLessThanOrEqual(fullMs + 100)
    }
  })

  test('another upstream is called at once, the first again after a pause', async () => {
    const { attempts, names } = startCall({
      upstreams: ['one', 'two'],
      outcomes: [failing('upstream_error'), failing('upstream_error'), null],
    })
    await advance(100)
    expect(names()).toEqual(['one', 'two'])
    await advance(5_000)
    expect(names()).toEqual(['one', 'two', 'one'])
    expect(attempts[2]?.atMs).toBeGreaterThanOrEqual(1_000)
  })

  test('the record has the last target and the number of retries', async () => {
    const { call, result } = startCall({
      upstreams: ['one', 'two'],
      outcomes: [failing('upstream_error'), null],
    })
    await advance(100)
    expect(await result).toBe('result')
    expect(call.record).toMatchObject({ retries: 1, target: { upstream: { name: 'two' } } })
  })

  test.each<[ErrorKind, readonly string[]]>([
    ['upstream_error', ['one', 'two', 'one', 'two']],
    ['upstream_truncated', ['one', 'two', 'one', 'two']],
    ['rate_limit_exceeded', ['one', 'two', 'one', 'two']],
    ['upstream_refused', ['one', 'two']],
    ['insufficient_quota', ['one', 'two']],
    ['upstream_invalid_answer', ['one', 'two']],
    ['invalid_request', ['one']],
    ['context_length_exceeded', ['one']],
  ])('after %s these upstreams are called: %p', async (kind, expected) => {
    const { names } = startCall({ upstreams: ['one', 'two'], outcomes: [failing(kind)] })
    await advance(20_000)
    expect(names()).toEqual([...expected])
  })

  test('the limit counts retries, not attempts', async () => {
    for (const retriesMax of [0, 1, 2]) {
      const { names } = startCall({
        retry: { retriesMax },
        outcomes: [failing('upstream_error')],
      })
      await advance(20_000)
      expect(names()).toHaveLength(retriesMax + 1)
    }
  })
})

describe('Retry-After', () => {
  test('is waited for, up to and including the limit', async () => {
    const { attempts } = startCall({
      retry: { retryAfterMaxMs: 7_000 },
      outcomes: [failing('rate_limit_exceeded', 7), null],
    })
    await advance(6_900)
    expect(attempts).toHaveLength(1)
    await advance(100)
    expect(attempts).toHaveLength(2)
  })

  test('beyond the limit ends the call at once', async () => {
    const { attempts, result } = startCall({
      retry: { retryAfterMaxMs: 6_999 },
      outcomes: [failing('rate_limit_exceeded', 7), null],
    })
    expect(await result).toMatchObject({ kind: 'rate_limit_exceeded', retryAfterS: 7 })
    expect(attempts).toHaveLength(1)
  })

  test('shorter than the back-off does not shorten it', async () => {
    const { attempts } = startCall({
      retry: { backoffMs: 10_000 },
      outcomes: [failing('rate_limit_exceeded', 1), null],
    })
    await advance(4_900)
    expect(attempts).toHaveLength(1)
    await advance(10_000)
    expect(attempts).toHaveLength(2)
  })
})

describe('an attempt', () => {
  test('that has no result in time counts as a failure of its upstream', async () => {
    const { attempts, names, result } = startCall({
      upstreams: ['one', 'two'],
      outcomes: ['hang', null],
    })
    await advance(59_900)
    expect(names()).toEqual(['one'])
    await advance(200)
    expect(await result).toBe('result')
    expect(names()).toEqual(['one', 'two'])
    expect(attempts.map(({ signal }) => signal.aborted)).toEqual([true, false])
    expect(attempts[0]?.signal.reason).toMatchObject({
      kind: 'upstream_first_event_timeout',
      message: 'The upstream sent no output within 60 s.',
    })
  })

  test('ends with the request, and no other follows', async () => {
    const { attempts, source, result } = startCall({ outcomes: ['hang'] })
    await runPendingPromises()
    source.abort()
    expect(await result).toMatchObject({ kind: 'client_closed' })
    expect(attempts).toHaveLength(1)
  })

  test('a request that ends during a pause ends the call', async () => {
    const { attempts, source, result } = startCall({ outcomes: [failing('upstream_error')] })
    await runPendingPromises()
    source.abort()
    expect(await result).toMatchObject({ name: 'AbortError' })
    await advance(20_000)
    expect(attempts).toHaveLength(1)
    expect(jest.getTimerCount()).toBe(0)
  })

  test('follows the request until the call is closed', async () => {
    const running = startCall({ outcomes: [null] })
    await running.result
    running.source.abort()
    expect(running.attempts[0]?.signal.aborted).toBe(true)

    const closed = startCall({ outcomes: [null] })
    await closed.result
    closed.call.close()
    closed.source.abort()
    expect(closed.attempts[0]?.signal.aborted).toBe(false)
  })

  test('without any target fails', async () => {
    const { result } = startCall({ upstreams: [], outcomes: [null] })
    expect(await result).toMatchObject({ kind: 'internal_error' })
  })
})
