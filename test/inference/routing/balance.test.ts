import { describe, expect, test } from 'bun:test'
import {
  type Behaviour,
  closedLoop,
  createSimulation,
  exponential,
  targetsOf,
} from './simulation.ts'

/** How upstreams of one tier share the load, in virtual time with fixed seeds. */

const ofSpeed =
  (meanOfMs: number | ((nowMs: number) => number)): Behaviour =>
  (random, nowMs) => {
    const meanMs = typeof meanOfMs === 'number' ? meanOfMs : meanOfMs(nowMs)
    const firstEventMs = exponential(random, meanMs)
    return { firstEventMs, totalMs: firstEventMs + exponential(random, 5 * meanMs) }
  }

async function sharesOf(given: {
  seed: number
  weights: readonly number[]
  meansMs: readonly number[]
  callers: number
}): Promise<number[]> {
  const simulation = createSimulation({ seed: given.seed, targets: targetsOf(...given.weights) })
  const behaviours = Object.fromEntries(
    given.meansMs.map((meanMs, index) => [`upstream-${index}`, ofSpeed(meanMs)]),
  )
  // Of the fastest.
  const meanMs = 6 * Math.min(...given.meansMs)
  const served = Object.values(
    await closedLoop(simulation, behaviours, {
      callers: given.callers,
      forMs: (requests * meanMs) / given.callers,
    }),
  )
  const total = served.reduce((sum, count) => sum + count, 0)
  return served.map((count) => count / total)
}

/** About this many in each simulation, so that chance has little part in it. */
const requests = 20_000
const loads = [1, 2, 16, 200]
const seeds = [1, 2, 3]

describe.each(loads)('with %d callers', (callers) => {
  test.each(seeds)('two equal upstreams share within 5 %% (seed %d)', async (seed) => {
    const [first = 0] = await sharesOf({ seed, weights: [1, 1], meansMs: [100, 100], callers })
    expect(Math.abs(first - 0.5)).toBeLessThan(0.025)
  })

  test.each(seeds)('a four times slower one gets at most 25 %% (seed %d)', async (seed) => {
    const given = { seed, weights: [1, 1], callers }
    const [slow = 1] = await sharesOf({ ...given, meansMs: [400, 100] })
    expect(slow).toBeLessThan(0.25)
    // It is not forgotten, or its recovery would go unnoticed.
    expect(slow).toBeGreaterThan(0.01)
  })
})

// A few requests at a time go to idle upstreams, whatever their weight.
describe.each([1, 16, 200])('with %d callers', (callers) => {
  test.each(seeds)('three share by weight (seed %d)', async (seed) => {
    const given = { seed, weights: [1, 2, 3], meansMs: [100, 100, 100], callers }
    const shares = await sharesOf(given)
    for (const [index, share] of shares.entries()) {
      expect(Math.abs(share - (index + 1) / 6)).toBeLessThan(0.06)
    }
  })
})

test('a slow upstream that recovers gets its share back', async () => {
  const simulation = createSimulation({ seed: 4, targets: targetsOf(1, 1) })
  const slowForMs = 120_000
  const served = await closedLoop(
    simulation,
    {
      'upstream-0': ofSpeed((nowMs) => (nowMs < slowForMs ? 400 : 100)),
      'upstream-1': ofSpeed(100),
    },
    { callers: 4, forMs: slowForMs },
  )
  const whileSlow = { ...served }
  await simulation.runFor(10 * slowForMs)
  const later = Object.entries(served).map(([name, count]) => count - (whileSlow[name] ?? 0))
  const [recovered = 0, other = 0] = later
  expect(recovered / (recovered + other)).toBeGreaterThan(0.45)
})

test('one slow response, as of a cold start, does not make an upstream slow', async () => {
  const simulation = createSimulation({ seed: 5, targets: targetsOf(1, 1) })
  let isCold = true
  const coldOnce: Behaviour = () => {
    const firstEventMs = isCold ? 3_000 : 10
    isCold = false
    return { firstEventMs, totalMs: firstEventMs + 10 }
  }
  const warm: Behaviour = () => ({ firstEventMs: 10, totalMs: 20 })
  const served = await closedLoop(
    simulation,
    { 'upstream-0': coldOnce, 'upstream-1': warm },
    { callers: 1, forMs: 10_000 },
  )
  const { 'upstream-0': first = 0, 'upstream-1': second = 0 } = served
  expect(first / (first + second)).toBeGreaterThan(0.4)
})

test.each(seeds)(
  'one that starts as fast, but generates four times slower, gets a fifth under load (seed %d)',
  async (seed) => {
    const simulation = createSimulation({ seed, targets: targetsOf(1, 1) })
    const generating =
      (meanMs: number): Behaviour =>
      (random) => ({ firstEventMs: 20, totalMs: 20 + exponential(random, meanMs) })
    const served = await closedLoop(
      simulation,
      { 'upstream-0': generating(2_000), 'upstream-1': generating(500) },
      { callers: 16, forMs: 600_000 },
    )
    const { 'upstream-0': slow = 0, 'upstream-1': fast = 0 } = served
    expect(slow / (slow + fast)).toBeLessThan(0.25)
    expect(slow / (slow + fast)).toBeGreaterThan(0.15)
  },
)
