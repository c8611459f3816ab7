import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { OpenCall } from '#inference/open-call.ts'
import { nothingTried } from '#inference/routing/usable.ts'
import { AppError } from '#lib/errors.ts'
import { runPendingPromises } from '#test/support/pending-promises.ts'
import { makeCall, startQueue, unusedDeps } from '#test/support/queued-calls.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

async function advance(ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 50) {
    jest.advanceTimersByTime(50)
    await runPendingPromises()
  }
}

test('a call without capacity gets the slot of the call that ends', async () => {
  const { ask, upstream, ended } = startQueue()
  const first = ask()
  const second = ask()
  expect([first.granted.slot === null, second.granted.slot, upstream().queued]).toEqual([
    false,
    null,
    1,
  ])
  jest.advanceTimersByTime(200)
  first.granted.slot?.end(null)
  // At once, so that no other call takes it.
  expect([upstream().inFlight, upstream().queued]).toEqual([1, 0])
  await runPendingPromises()
  second.granted.slot?.end(null)
  expect(upstream().inFlight).toBe(0)
  expect(ended).toMatchObject([
    { model: 'upstream-name', priority: 'interactive', outcome: 'granted', waitedMs: 200 },
  ])
})

test('a client that disconnects while it waits leaves the queue', async () => {
  const { ask, upstream, ended } = startQueue()
  const first = ask()
  const gone = ask()
  const third = ask()
  gone.client.abort(new AppError('client_closed', 'The client disconnected.'))
  expect(upstream().queued).toBe(1)
  first.granted.slot?.end(null)
  await runPendingPromises()
  expect(gone.granted).toMatchObject({ slot: null, error: { kind: 'client_closed' } })
  expect(third.granted.slot).not.toBeNull()
  expect(ended.map(({ outcome }) => outcome)).toEqual(['abandoned', 'granted'])
})

test('a call that is cancelled already does not enter the queue', async () => {
  const { ask, router, upstream } = startQueue()
  ask()
  const { call, client } = makeCall()
  client.abort(new AppError('client_closed', 'The client disconnected.'))
  const error = await router.wait(call, nothingTried, client.signal).catch((reason) => reason)
  expect([error.kind, upstream().queued]).toEqual(['client_closed', 0])
})

test('a call that waits too long is refused with the time until the queue has drained', async () => {
  const { ask, upstream } = startQueue({ settings: { waitMaxMs: 10_000 } })
  ask()
  const waiting = [ask(), ask({ priority: 'batch' }), ask()]
  await advance(9_950)
  expect(waiting.map(({ granted }) => granted.error)).toEqual([null, null, null])
  await advance(50)
  const [error, batch, other] = waiting.map(({ granted }) => granted.error)
  // None of the two calls was granted within 10 s.
  expect(error).toMatchObject({ kind: 'queue_timeout', status: 503, retryAfterS: 20 })
  expect([batch, other]).toMatchObject([null, { kind: 'queue_timeout' }])
  expect(upstream().queued).toBe(1)
})

test('retry-after follows the rate at which the queue drains', async () => {
  const { ask } = startQueue({ settings: { waitingMax: 6 } })
  let running = ask()
  const users = ['b', 'c', 'd', 'e', 'f', 'g']
  let waiting = users.map((userId) => ask({ userId }))
  for (let round = 0; round < 4; round++) {
    await advance(4_000)
    running.granted.slot?.end(null)
    await runPendingPromises()
    const next = waiting.find(({ granted }) => granted.slot !== null)
    if (next === undefined) throw new Error('nobody was granted')
    running = next
    waiting = [...waiting.filter((other) => other !== next), ask({ userId: `h${round}` })]
  }
  const refused = ask({ userId: 'z' })
  await runPendingPromises()
  // Six calls wait, and one is granted every 4 s.
  expect(refused.granted.error).toMatchObject({ kind: 'queue_full', status: 503, retryAfterS: 24 })
})

test('a principal with too many waiting calls is refused with 429, others are not', async () => {
  const { ask } = startQueue({ settings: { waitingPerPrincipalMax: 2 } })
  ask({ userId: 'zoe' })
  const calls = [ask(), ask(), ask(), ask({ keyId: 'key-1' }), ask({ userId: 'ben' })]
  await runPendingPromises()
  const kinds = calls.map(({ granted }) => (granted.error as AppError | null)?.kind ?? 'waits')
  expect(kinds).toEqual(['waits', 'waits', 'rate_limit_exceeded', 'waits', 'waits'])
  expect(calls[2]?.granted.error).toMatchObject({ status: 429, retryAfterS: 2 })
})

test('background, flexible and indexing calls yield to interactive ones', async () => {
  const { ask } = startQueue()
  let running = ask()
  const waiting = {
    batch: ask({ priority: 'batch' }),
    flexible: ask({ serviceTier: 'flex' }),
    background: ask({ priority: 'background' }),
    interactive: ask({ serviceTier: 'auto' }),
  }
  const order: string[] = []
  for (let round = 0; round < 4; round++) {
    running.granted.slot?.end(null)
    await runPendingPromises()
    for (const [name, asked] of Object.entries(waiting)) {
      if (asked.granted.slot === null || order.includes(name)) continue
      order.push(name)
      running = asked
    }
  }
  expect(order).toEqual(['interactive', 'background', 'batch', 'flexible'])
})

/** Ends one call after the other, with this usage; returns the users in the order of their slots. */
async function drain(
  running: ReturnType<ReturnType<typeof startQueue>['ask']>,
  waiting: (ReturnType<ReturnType<typeof startQueue>['ask']> & { userId: string })[],
  outputTokensOf: (round: number) => number | null,
): Promise<string[]> {
  const order: string[] = []
  let { slot } = running.granted
  for (let round = 0; waiting.length > 0; round++) {
    const outputTokens = outputTokensOf(round)
    if (slot !== null && outputTokens !== null) slot.usage = { ...noUsage, outputTokens }
    slot?.end(null)
    await runPendingPromises()
    const at = waiting.findIndex(({ granted }) => granted.slot !== null)
    const [next] = waiting.splice(at, 1)
    if (at < 0 || next === undefined) throw new Error('nobody was granted')
    order.push(next.userId)
    slot = next.granted.slot
  }
  return order
}

const noUsage = {
  inputTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
}

test('a long prompt costs more turns than a short one', async () => {
  const { ask } = startQueue()
  const running = ask({ userId: 'zoe' })
  const waiting = ['anne', 'anne', 'ben', 'ben', 'ben', 'ben'].map((userId) => {
    const text = userId === 'anne' ? 'a long text '.repeat(200) : 'short'
    return { userId, ...ask({ userId, text }) }
  })
  const order = await drain(running, waiting, () => null)
  expect(order).toEqual(['anne', 'ben', 'ben', 'ben', 'anne', 'ben'])
})

test('what a call really generated is charged when it ends', async () => {
  const { ask } = startQueue()
  const running = ask({ userId: 'zoe' })
  const users = ['anne', 'anne', 'anne', 'ben', 'ben', 'ben']
  const waiting = users.map((userId) => ({ userId, ...ask({ userId }) }))
  const order = await drain(running, waiting, (round) => (round === 1 ? 5_000 : 300))
  expect(order).toEqual(['anne', 'ben', 'ben', 'ben', 'anne', 'anne'])
})

test('capacity that returns with time is found', async () => {
  const { ask, upstream, router } = startQueue()
  const both = ['gpu', 'other']
  const first = ask({ upstreams: both })
  const second = ask({ upstreams: both })
  const names = [first, second].map(({ granted }) => granted.slot?.target.upstream.name)
  expect(names.toSorted()).toEqual(both)
  const { slot } = first.granted
  if (slot === null) throw new Error('no slot')
  const freed = slot.target.upstream.name
  slot.state.health.eject(performance.now(), { isSilent: false })
  slot.end(null)
  const waiting = ask({ upstreams: both })
  await advance(4_900)
  expect([waiting.granted.slot, upstream(freed).inFlight]).toEqual([null, 0])
  await advance(400)
  expect(waiting.granted.slot?.target.upstream.name).toBe(freed)
  expect([...router.upstreams()].map(({ queued }) => queued)).toEqual([0, 0])
})

test('calls whose upstream is taken out of service fail when they are next', async () => {
  const { ask, upstream } = startQueue()
  const first = ask()
  const waiting = [ask(), ask()]
  upstream().isDraining = true
  first.granted.slot?.end(null)
  await runPendingPromises()
  for (const { granted } of waiting) {
    expect(granted).toMatchObject({ slot: null, error: { kind: 'service_unavailable' } })
  }
  expect(upstream().queued).toBe(0)
})

test('at the end of the process every waiting call is refused, and later ones', async () => {
  const { ask, queue, upstream } = startQueue()
  const running = ask()
  const waiting = [ask(), ask({ priority: 'batch' }), ask({ userId: 'ben' })]
  queue.stop(new AppError('draining', 'The server is stopping.'))
  const late = ask()
  await runPendingPromises()
  for (const { granted } of [...waiting, late]) {
    expect(granted.error).toMatchObject({ kind: 'draining' })
  }
  running.granted.slot?.end(null)
  expect([upstream().queued, upstream().inFlight, jest.getTimerCount()]).toEqual([0, 0, 0])
})

test('waiting calls are counted by model and priority', () => {
  const { ask, queue } = startQueue()
  for (let at = 0; at < 3; at++) ask()
  ask({ priority: 'batch' })
  expect(queue.waiting()).toEqual([
    [2, 'upstream-name', 'interactive'],
    [1, 'upstream-name', 'batch'],
  ])
})

test('a token count does not wait for a slot, an embedding does', async () => {
  const { ask, router, upstream } = startQueue()
  ask()
  const { call, client } = makeCall()
  const deps = { ...unusedDeps, router }
  const options = { retry: deps.retry, limitMs: 1_000, streamed: true }
  const attempt = (kind: 'count-tokens' | 'embed') =>
    new OpenCall(kind, 'a-model', call).attempt(deps, options, async () => 'result')
  const counting = attempt('count-tokens').catch((error) => error.kind)
  expect(await counting).toBe('upstream_overloaded')
  const embedding = attempt('embed').catch((error) => error.kind)
  expect(upstream().queued).toBe(1)
  client.abort(new AppError('client_closed', 'The client disconnected.'))
  expect(await embedding).toBe('client_closed')
})

test('before a queue has drained, retry-after follows from the usual time in service', async () => {
  const { ask } = startQueue({ slots: 2, settings: { waitingMax: 4 } })
  for (let round = 0; round < 3; round++) {
    const running = [ask(), ask()]
    await advance(12_000)
    for (const { granted } of running) granted.slot?.end(null)
  }
  const users = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const userId of users) ask({ userId })
  const refused = ask({ userId: 'z' })
  await runPendingPromises()
  // Two slots of 12 s each, and four calls that wait.
  expect(refused.granted.error).toMatchObject({ kind: 'queue_full', retryAfterS: 24 })
})

test('a call whose attempt failed may wait again while the queue is full', async () => {
  const { ask, router, upstream } = startQueue({ settings: { waitingMax: 1 } })
  ask()
  ask({ userId: 'ben' })
  const { call, client } = makeCall()
  const [failed] = call.targets
  if (failed === undefined) throw new Error('no target')
  const tried = { targets: [failed], isPermanent: false }
  const again = router.wait(call, tried, client.signal).catch((error) => error.kind)
  const fresh = router.wait(call, nothingTried, client.signal).catch((error) => error.kind)
  expect([await fresh, upstream().queued]).toEqual(['queue_full', 2])
  client.abort(new AppError('client_closed', 'The client disconnected.'))
  expect(await again).toBe('client_closed')
})
