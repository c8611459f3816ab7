import { describe, expect, test } from 'bun:test'
import { blameOf, isSilence, wasNotSent } from '#inference/routing/outcome.ts'
import type { ErrorKind } from '#lib/errors.ts'
import { createSimulation, failing, orderedTargets } from './simulation.ts'

test.each<[ErrorKind, ReturnType<typeof blameOf>, boolean, boolean]>([
  ['upstream_unreachable', 'upstream', false, true],
  ['upstream_connect_timeout', 'upstream', true, true],
  ['upstream_error', 'model', false, false],
  ['upstream_refused', 'model', false, false],
  ['upstream_invalid_answer', 'model', false, false],
  ['upstream_truncated', 'model', false, false],
  ['upstream_overloaded', 'model', false, false],
  ['upstream_first_event_timeout', 'model', true, false],
  ['upstream_gap_timeout', 'model', true, false],
  ['rate_limit_exceeded', 'model', false, false],
  ['insufficient_quota', 'model', false, false],
  ['invalid_request', 'request', false, false],
  ['context_length_exceeded', 'request', false, false],
  ['request_too_large', 'request', false, false],
  ['client_closed', 'nobody', false, false],
  ['internal_error', 'nobody', false, false],
])('%s is blamed on the %s', (kind, blame, isSilent, isUnsent) => {
  const failure = failing(kind)
  expect(blameOf(failure)).toBe(blame)
  expect([isSilence(failure), wasNotSent(failure)]).toEqual([isSilent, isUnsent])
})

describe('a failed attempt', () => {
  /** The state of an upstream after attempts that failed so, one per second. */
  function after(...kinds: readonly ErrorKind[]) {
    const targets = orderedTargets()
    let nowMs = 0
    const simulation = createSimulation({ seed: 1, targets })
    const [target] = targets
    if (target === undefined) throw new Error('no target')
    const state = simulation.router.stateOf(target)
    for (const kind of kinds) {
      nowMs = simulation.nowMs()
      simulation.take().end(failing(kind))
      void simulation.runFor(1_000)
    }
    const { upstream, health } = state
    return {
      failures: { upstream: upstream.health.failures, model: health.failures },
      counted: upstream.failures,
      last: upstream.lastFailure,
      heardAtMs: upstream.heardAtMs,
      waiting: upstream.waiting.size,
      nowMs,
    }
  }
  const never = Number.NEGATIVE_INFINITY

  test('of the upstream counts for it alone', () => {
    expect(after('upstream_unreachable', 'upstream_unreachable')).toEqual({
      failures: { upstream: 2, model: 0 },
      counted: 2,
      last: { kind: 'upstream_unreachable', atMs: 1_000 },
      heardAtMs: never,
      waiting: 0,
      nowMs: 1_000,
    })
  })

  test('of the model shows that the upstream is reachable', () => {
    expect(after('upstream_unreachable', 'upstream_error')).toEqual({
      failures: { upstream: 0, model: 1 },
      counted: 2,
      last: { kind: 'upstream_error', atMs: 1_000 },
      heardAtMs: 1_000,
      waiting: 0,
      nowMs: 1_000,
    })
  })

  test('of the request shows that both are well', () => {
    const { failures, counted, heardAtMs } = after(
      'upstream_error',
      'upstream_unreachable',
      'invalid_request',
    )
    expect({ failures, counted, heardAtMs }).toEqual({
      failures: { upstream: 0, model: 0 },
      counted: 2,
      heardAtMs: 2_000,
    })
  })

  test('of the client says nothing', () => {
    expect(after('upstream_error', 'client_closed')).toMatchObject({
      failures: { upstream: 0, model: 1 },
      counted: 1,
      heardAtMs: 0,
    })
  })

  test('of a token count that took too long says nothing, and any other failure counts', () => {
    const failures = (['upstream_first_event_timeout', 'upstream_error'] as const).map((kind) => {
      const simulation = createSimulation({ seed: 1, targets: orderedTargets() })
      const slot = simulation.take()
      slot.form = 'count'
      slot.end(failing(kind))
      return slot.state.upstream.failures
    })
    expect(failures).toEqual([0, 1])
  })
})

test('the time of an attempt that lost counts, unless it was a whole response', async () => {
  const simulation = createSimulation({ seed: 1, targets: orderedTargets() })
  const lose = async (form: 'first-event' | 'whole', isAnswered = false) => {
    const slot = simulation.take()
    slot.form = form
    if (isAnswered) slot.answered()
    await simulation.runFor(100)
    slot.lose()
    const { firstEvent, whole, upstream } = slot.state
    return [firstEvent.samples, whole.samples, upstream.inFlight]
  }
  expect(await lose('first-event')).toEqual([1, 0, 0])
  expect(await lose('whole')).toEqual([1, 0, 0])
  expect(await lose('first-event', true)).toEqual([2, 0, 0])
})
