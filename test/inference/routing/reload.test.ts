import { expect, test } from 'bun:test'
import type { ModelCall } from '#inference/inference.ts'
import type { Probes } from '#inference/routing/checks.ts'
import type { RouterConfiguration } from '#inference/routing/router.ts'
import { defaultHealthSettings } from '#inference/routing/settings.ts'
import type { Slot } from '#inference/routing/slot.ts'
import { nothingTried } from '#inference/routing/usable.ts'
import type { Target, Upstream } from '#inference/upstream.ts'
import { Cancellation } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import { target } from '#test/support/generations.ts'
import { runPendingPromises } from '#test/support/pending-promises.ts'
import { makeCall, startQueue } from '#test/support/queued-calls.ts'

const unreachable = () => new AppError('upstream_unreachable', 'refused')
const deadProbes: Probes = { reach: async () => false, generate: async () => false }

/** The target that `makeCall` gives to an upstream. */
const known = (name: string): Target => ({ ...target(`http://${name}.test/v1`, name), tier: 0 })
const changed = (name: string, fields: Partial<Upstream>): Upstream => ({
  ...known(name).upstream,
  ...fields,
})

function start(names: readonly string[], options: Parameters<typeof startQueue>[0] = {}) {
  let nowMs = 0
  const started = startQueue({ ...options, nowMs: () => nowMs })
  const targets = names.map(known)
  const configure = (upstreams: readonly Upstream[], given: Partial<RouterConfiguration> = {}) =>
    started.router.configure({
      upstreams,
      settings: defaultHealthSettings,
      maxInFlightOf: options.slotsOf ?? (() => options.slots ?? 1),
      probes: options.probes ?? deadProbes,
      ...given,
    })
  configure(targets.map(({ upstream }) => upstream))
  const callOf = (userId = 'anne', more: Partial<ModelCall> = {}): ModelCall => ({
    ...makeCall({ userId }).call,
    targets,
    ...more,
  })
  const take = (call = callOf()) => started.router.take(call, nothingTried)
  const wait = (call = callOf()) => {
    const granted: { slot: Slot | null; error: unknown } = { slot: null, error: null }
    started.router.wait(call, nothingTried, new AbortController().signal).then(
      (slot) => {
        granted.slot = slot
      },
      (error: unknown) => {
        granted.error = error
      },
    )
    return granted
  }
  return {
    ...started,
    targets,
    configure,
    callOf,
    take,
    wait,
    names: () => [...started.router.upstreams()].map(({ upstream }) => upstream.name),
    pass(ms: number) {
      nowMs += ms
    },
  }
}

test('a server that stays keeps its health, its load and its latency, with its new credential', () => {
  const { router, targets, configure, take, upstream, pass } = start(['gpu'], { slots: 9 })
  const [running, slow] = [take(), take()]
  pass(40)
  slow?.answered()
  for (let failure = 0; failure < 3; failure++) take()?.end(unreachable())
  const before = upstream()
  expect(before.health.isEjected).toBe(true)
  configure([changed('gpu', { key: 'new', headers: { 'x-team': 'b' } })])
  const after = upstream()
  expect(after).toBe(before)
  expect({ ...after, upstream: after.upstream.key }).toMatchObject({
    inFlight: 2,
    requests: 5,
    failures: 3,
    upstream: 'new',
  })
  expect(after.health.isEjected).toBe(true)
  expect(router.stateOf(targets[0] ?? known('gpu')).firstEvent.usualMs).toBeCloseTo(40)
  running?.end(null)
  expect(after.inFlight).toBe(1)
})

test('calls that were resolved before a reload use the present definition', () => {
  const { configure, take } = start(['gpu'], { slots: 9 })
  configure([changed('gpu', { key: 'new' })])
  expect(take()?.state.upstream.upstream.key).toBe('new')
  configure([changed('gpu', { key: 'newer', baseUrl: 'http://other.test/v1' })])
  expect(take()?.state.upstream.upstream).toMatchObject({
    key: 'newer',
    baseUrl: 'http://other.test/v1',
  })
})

test('a new url is a new server: requests at the old one neither load nor blame it', () => {
  const { configure, take, upstream, pass } = start(['gpu'], { slots: 5 })
  const old = [take(), take(), take(), take()]
  pass(10)
  configure([changed('gpu', { baseUrl: 'http://other.test/v1' })])
  const fresh = upstream()
  expect([fresh.inFlight, fresh.requests]).toEqual([0, 4])
  for (const slot of old) slot?.end(unreachable())
  expect(fresh.health.isEjected).toBe(false)
  expect([fresh.inFlight, fresh.failures]).toEqual([0, 0])
  const running = take()
  expect([fresh.inFlight, fresh.requests]).toEqual([1, 5])
  running?.end(null)
})

test('a removed upstream gets no new call, and is listed until its last request ends', () => {
  const { configure, take, callOf, targets, names } = start(['gpu', 'spare'], { slots: 3 })
  const [gpu] = targets
  const onGpu = callOf('anne', { targets: [gpu ?? known('gpu')] })
  const running = take(onGpu)
  configure([known('spare').upstream])
  expect(() => take(onGpu)).toThrow('out of service')
  for (let call = 0; call < 3; call++) expect(take()?.target.upstream.name).toBe('spare')
  expect(names()).toEqual(['spare', 'gpu'])
  running?.end(null)
  expect(names()).toEqual(['spare'])
})

test('further turns of a running response may use a removed upstream', () => {
  const { configure, take, callOf } = start(['gpu'])
  take()
  configure([known('spare').upstream])
  expect(take(callOf('anne', { continues: true }))?.target.upstream.name).toBe('gpu')
})

test('calls that wait for a removed upstream move to another one, or are refused', async () => {
  const { configure, take, wait, callOf, targets } = start(['gpu', 'spare'])
  const [gpu = known('gpu')] = targets
  const [first, second] = [take(), take()]
  const [either, onGpu] = [wait(), wait(callOf('ben', { targets: [gpu] }))]
  await runPendingPromises()
  configure([known('spare').upstream])
  await runPendingPromises()
  expect(onGpu.error).toMatchObject({ kind: 'service_unavailable' })
  expect(either.slot).toBeNull()
  const onSpare = [first, second].find((slot) => slot?.target.upstream.name === 'spare')
  onSpare?.end(null)
  await runPendingPromises()
  expect(either.slot?.target.upstream.name).toBe('spare')
})

test('calls that wait for a server whose url changes are served by the new one', async () => {
  const { configure, take, wait, upstream } = start(['gpu'])
  take()
  const waiting = wait()
  configure([changed('gpu', { baseUrl: 'http://other.test/v1' })])
  await runPendingPromises()
  expect(waiting.slot?.state.upstream).toBe(upstream())
})

test('waiting calls get the slots of a raised limit at once; a lowered one holds for new calls', async () => {
  const { configure, take, wait, upstream } = start(['gpu'])
  const { upstream: definition } = known('gpu')
  take()
  const waiting = [wait(), wait()]
  configure([definition], { maxInFlightOf: () => 3 })
  await runPendingPromises()
  expect(waiting.map(({ slot }) => slot !== null)).toEqual([true, true])
  configure([definition], { maxInFlightOf: () => 1 })
  expect(upstream().inFlight).toBe(3)
  for (const { slot } of waiting) slot?.end(null)
  expect(take()).toBeNull()
})

test('changed health settings hold for upstreams that are known', () => {
  const { configure, take, upstream } = start(['gpu'], { slots: 9 })
  const { upstream: definition } = known('gpu')
  configure([definition], { settings: { ...defaultHealthSettings, failuresMax: 1 } })
  take()?.end(unreachable())
  expect(upstream().health.isEjected).toBe(true)
})

test('a removed upstream that falls silent still loses its requests to another one', async () => {
  const { router, configure, take, callOf, pass } = start(['gpu', 'spare'], {
    slots: 9,
    probes: deadProbes,
  })
  const slot = take(callOf())
  const name = slot?.target.upstream.name ?? ''
  const cancellation = new Cancellation()
  if (slot !== null) slot.cancellation = cancellation
  configure(name === 'gpu' ? [known('spare').upstream] : [known('gpu').upstream])
  pass(20_000)
  router.check()
  await runPendingPromises()
  expect(cancellation.aborted).toBe(true)
})

test('an upstream that returns before its requests end is the same again', () => {
  const { configure, take, upstream, names } = start(['gpu', 'spare'], { slots: 9 })
  const before = upstream('gpu')
  take()
  take()
  configure([known('spare').upstream])
  configure([known('spare').upstream, changed('gpu', { key: 'k' })])
  expect(upstream('gpu')).toBe(before)
  expect([before.isDraining, before.isRemoved, before.maxInFlight]).toEqual([false, false, 9])
  expect(names()).toEqual(['spare', 'gpu'])
})

test('an upstream that an administrator has drained stays drained', () => {
  const { router, configure, upstream } = start(['gpu', 'spare'])
  router.drain(new Set(['gpu', 'later']))
  configure([changed('gpu', { key: 'k' }), known('later').upstream, known('spare').upstream])
  expect(['gpu', 'later', 'spare'].map((name) => upstream(name).isDraining)).toEqual([
    true,
    true,
    false,
  ])
})

test('another protocol under the same name does not take over calls of the first one', () => {
  const { configure, take, upstream } = start(['gpu'])
  configure([changed('gpu', { kind: 'messages' })])
  expect(() => take()).toThrow('out of service')
  expect(upstream().isDraining).toBe(false)
})
