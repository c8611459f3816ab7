import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { fairnessOf, quantile } from '../../../bench/support/fairness.ts'
import {
  type SimulatedCaller,
  type SimulatedUpstream,
  simulateTraffic,
  tokensPerService,
} from './traffic-simulation.ts'

/** `bench traffic` in virtual time: two hundred callers and three upstreams. */

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const serviceMs = 200
const slots = 8
const fast = (name: string): SimulatedUpstream => ({ name, slots, serviceMs })
const slow: SimulatedUpstream = { name: 'slow', slots, serviceMs: 4 * serviceMs }
const threeUpstreams = [fast('one'), fast('two'), slow]
/** Calls per second that the upstreams serve. */
const capacityOf = (upstreams: readonly SimulatedUpstream[]) =>
  upstreams.reduce((sum, each) => sum + (each.slots * 1_000) / each.serviceMs, 0)

const others = 199
/** Callers that together send this many calls per second. */
const callersAt = (perSecond: number, count = others): SimulatedCaller[] =>
  Array.from({ length: count }, () => ({
    everyMs: (count * 1_000) / perSecond,
    outstanding: 0,
    tokens: tokensPerService,
  }))

type Result = Awaited<ReturnType<typeof simulateTraffic>>

const utilisation = ({ upstreams }: Result, forMs: number) =>
  [...upstreams.values()].map(({ busyMs, given }) => busyMs / (forMs * given.slots))
const shares = ({ upstreams }: Result) => {
  const served = [...upstreams.values()].map((upstream) => upstream.served)
  const all = served.reduce((sum, count) => sum + count, 0)
  return served.map((count) => count / all)
}

test.each([1, 2, 3])(
  'one key with ten times the load of all others delays nobody else (seed %p)',
  async (seed) => {
    const forMs = 30_000
    const rest = 0.5 * capacityOf(threeUpstreams)
    const result = await simulateTraffic({
      seed,
      upstreams: threeUpstreams,
      callers: [...callersAt(rest), ...callersAt(10 * rest, 1)],
      warmUpMs: 5_000,
      forMs,
    })
    const polite = result.callers.slice(0, others)
    const waits = polite.flatMap(({ waitsMs }) => waitsMs)
    expect(waits.length).toBeGreaterThan(1_000)
    expect(quantile(waits, 0.99)).toBeLessThanOrEqual(2 * serviceMs)
    expect(polite.reduce((sum, { refused }) => sum + refused, 0)).toBe(0)
    for (const busy of utilisation(result, forMs)) expect(busy).toBeGreaterThanOrEqual(0.98)
    // Calls that are still in service at the end count as not served.
    const demands = result.callers.map(({ demanded }) => demanded)
    const served = result.callers.map((caller) => caller.served)
    expect(fairnessOf(demands, served)).toBeGreaterThanOrEqual(0.95)
  },
)

test.each([1, 2, 3])('callers that all wait get the same tokens (seed %p)', async (seed) => {
  const callers: SimulatedCaller[] = Array.from({ length: 40 }, (_, at) => ({
    everyMs: Number.POSITIVE_INFINITY,
    // One sends ten times as many calls, and some send much longer ones.
    outstanding: at === 0 ? 40 : 4,
    tokens: at % 4 === 1 ? 10 * tokensPerService : tokensPerService,
  }))
  const result = await simulateTraffic({
    seed,
    upstreams: threeUpstreams,
    callers,
    warmUpMs: 10_000,
    forMs: 300_000,
    settings: { waitMaxMs: 600_000, waitingMax: 1_000 },
  })
  const served = result.callers.map((caller) => caller.served)
  expect(
    fairnessOf(
      served.map(() => Number.POSITIVE_INFINITY),
      served,
    ),
  ).toBeGreaterThanOrEqual(0.95)
})

test('below capacity equal upstreams share the load, and a slow one gets little', async () => {
  const result = await simulateTraffic({
    seed: 1,
    upstreams: threeUpstreams,
    callers: callersAt(0.3 * capacityOf(threeUpstreams)),
    warmUpMs: 5_000,
    forMs: 60_000,
  })
  const [one = 0, two = 0, slowShare = 1] = shares(result)
  expect(slowShare).toBeLessThanOrEqual(0.25)
  expect(Math.abs(one - two) / (one + two)).toBeLessThanOrEqual(0.05)
})

test('an upstream that dies under load and returns costs nobody a response', async () => {
  const forMs = 60_000
  const flaky = { ...fast('flaky'), downMs: { from: 20_000, until: 35_000 } }
  const upstreams = [fast('one'), flaky, slow]
  const result = await simulateTraffic({
    seed: 1,
    upstreams,
    callers: callersAt(0.45 * capacityOf(upstreams)),
    warmUpMs: 5_000,
    forMs,
  })
  const died = result.upstreams.get('flaky')
  expect(died?.noticed).toBeLessThanOrEqual(3)
  expect(died?.cut).toBeGreaterThan(0)
  expect(result.callers.reduce((sum, { refused }) => sum + refused, 0)).toBe(0)
  // It takes part again.
  expect(shares(result)[1]).toBeGreaterThan(0.2)
})
