import { expect, test } from 'bun:test'
import { chooseByLoad, chooseForSession } from '#inference/routing/balance.ts'
import { Latency } from '#inference/routing/latency.ts'
import { defaultHealthSettings } from '#inference/routing/settings.ts'
import { UpstreamState } from '#inference/routing/state.ts'
import { targetsOf } from './simulation.ts'

/** What the times of an upstream mean for its share, one request at a time. */

function latencyOf(...timesMs: readonly number[]): Latency {
  const latency = new Latency()
  for (const ms of timesMs) latency.add(ms)
  return latency
}

const times = (count: number, ms: number) => Array<number>(count).fill(ms)

test('the first times are averaged, and a later one changes the mean by a twentieth', () => {
  expect(latencyOf(100).usualMs).toBeCloseTo(100, 6)
  // In proportion, so one long time changes little.
  expect(latencyOf(9, 999).usualMs).toBeCloseTo(99, 6)
  const settled = latencyOf(...times(400, 100), 200)
  expect(settled.samples).toBe(401)
  expect(settled.usualMs).toBeCloseTo(101 * (201 / 101) ** 0.05 - 1, 6)
})

test('a rarely exceeded time lies four deviations above the mean', () => {
  // The first deviation is the first time itself.
  expect(latencyOf(100, 100).highMs).toBeCloseTo(100 + 4 * 50, 6)
  expect(latencyOf(100, 100, 100, 100, 100).highMs).toBeCloseTo(100 + 4 * 20, 6)
  expect(latencyOf(100, 200).highMs).toBeCloseTo(150 + 4 * 100, 6)
})

function candidates(...weights: readonly number[]) {
  return targetsOf(...weights).map((target) => {
    const state = new UpstreamState(target.upstream, {
      maxInFlight: 100,
      settings: defaultHealthSettings,
      nowMs: 0,
      onHealthChange: () => {},
    })
    return { target, state: state.of(target) }
  })
}

type Given = { readonly field: 'firstEvent' | 'whole'; readonly ms: readonly [number, number] }

/** How many of a hundred idle turns the first of two upstreams gets. */
function turnsOf({ field, ms }: Given, samples = 3): number {
  const both = candidates(1, 1)
  for (const [index, { state }] of both.entries()) {
    for (const time of times(samples, ms[index] ?? 0)) state[field].add(time)
  }
  const chosen = Array.from({ length: 100 }, () => chooseByLoad(both, () => 0.4))
  return chosen.filter((each) => each === both[0]).length
}

test.each<[string, Given, number, number]>([
  ['of equal speed take turns', { field: 'firstEvent', ms: [100, 100] }, 3, 50],
  ['less than twice as slow count as equal', { field: 'firstEvent', ms: [190, 100] }, 3, 50],
  ['of which too little is known count as equal', { field: 'firstEvent', ms: [400, 100] }, 2, 50],
  // Three times slower, beyond the factor of two: a share of one to nine.
  ['that respond in pieces are compared', { field: 'firstEvent', ms: [400, 100] }, 3, 10],
  ['that respond at once are compared', { field: 'whole', ms: [400, 100] }, 3, 10],
  ['are compared in either order', { field: 'whole', ms: [100, 400] }, 3, 90],
])('idle upstreams %s', (_, given, samples, turns) => {
  expect(Math.abs(turnsOf(given, samples) - turns)).toBeLessThanOrEqual(2)
})

test('the one with fewer requests for its weight is chosen', () => {
  const [light, heavy] = candidates(1, 3)
  if (light === undefined || heavy === undefined) throw new Error('two candidates')
  light.state.upstream.inFlight = 1
  heavy.state.upstream.inFlight = 2
  expect(chooseByLoad([light, heavy], () => 0)).toBe(heavy)
  heavy.state.upstream.inFlight = 4
  expect(chooseByLoad([light, heavy], () => 0)).toBe(light)
  expect(chooseByLoad([heavy], () => 0)).toBe(heavy)
  expect(() => chooseByLoad([], () => 0)).toThrow('no candidates')
})

test('a session keeps its upstream up to eight requests, and then up to its share', () => {
  const both = candidates(1, 1)
  const own = chooseForSession(both, 'a')
  const other = both.find((each) => each !== own)
  own.state.upstream.inFlight = 7
  expect(chooseForSession(both, 'a')).toBe(own)
  own.state.upstream.inFlight = 8
  expect(chooseForSession(both, 'a')).toBe(other as typeof own)
  if (other !== undefined) other.state.upstream.inFlight = 8
  expect(chooseForSession(both, 'a')).toBe(own)
})
