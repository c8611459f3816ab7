import { describe, expect, test } from 'bun:test'
import { nothingTried, type Tried } from '#inference/routing/usable.ts'
import type { AppError, ErrorKind } from '#lib/errors.ts'
import {
  createSimulation,
  failing,
  nameOf,
  orderedTargets as ordered,
  type Simulation,
  targetsOf,
} from './simulation.ts'

/** Which upstreams a caller meets while one of them fails, in virtual time. */

/** Serves one request, with failover. Returns the names of the upstreams that it tried. */
function ask(simulation: Simulation, failureOf: (name: string) => AppError | null): string[] {
  const names: string[] = []
  let tried: Tried = nothingTried
  for (;;) {
    const slot = simulation.take(tried)
    const name = nameOf(slot)
    names.push(name)
    const failure = failureOf(name)
    if (failure === null) slot.answered()
    slot.end(failure)
    if (failure === null || names.length > 3) return names
    tried = { targets: [...tried.targets, slot.target], isPermanent: false }
  }
}

const firstDown = (kind: ErrorKind) => (name: string) =>
  name === 'upstream-0' ? failing(kind) : null

describe('an upstream that fails', () => {
  test.each<[ErrorKind, number]>([
    ['upstream_unreachable', 3],
    ['upstream_error', 3],
    ['upstream_overloaded', 3],
    ['upstream_refused', 3],
    ['upstream_connect_timeout', 1],
    ['upstream_first_event_timeout', 1],
    // The request was at fault.
    ['invalid_request', 20],
  ])('with %s is noticed by %d requests', (kind, noticed) => {
    const simulation = createSimulation({ seed: 1, targets: ordered() })
    const tries = Array.from({ length: 20 }, () => ask(simulation, firstDown(kind)))
    const met = tries.filter((names) => names.includes('upstream-0'))
    expect(met).toHaveLength(noticed)
    expect(tries.every((names) => names.at(-1) === 'upstream-1')).toBe(true)
  })

  test('needs consecutive failures: one success starts again', () => {
    const simulation = createSimulation({ seed: 1, targets: ordered() })
    for (let round = 0; round < 20; round++) {
      const fails = round % 3 !== 2
      expect(ask(simulation, fails ? firstDown('upstream_error') : () => null)[0]).toBe(
        'upstream-0',
      )
    }
  })

  test('fails for one of its models only, unless it is unreachable', () => {
    const [first, second] = ordered()
    if (first === undefined || second === undefined) throw new Error('two targets')
    const other = { ...first, model: 'other' }
    const simulation = createSimulation({ seed: 1, targets: [first, second] })
    for (let round = 0; round < 3; round++) ask(simulation, firstDown('upstream_error'))
    const { stateOf } = simulation.router
    expect(stateOf(first).health.isEjected).toBe(true)
    expect([stateOf(other).health.isEjected, stateOf(other).upstream.health.isEjected]).toEqual([
      false,
      false,
    ])
  })

  test('breaks off after its first output is ejected as well', () => {
    const simulation = createSimulation({ seed: 1, targets: ordered() })
    const names = Array.from({ length: 10 }, () => {
      const slot = simulation.take()
      slot.answered()
      slot.end(nameOf(slot) === 'upstream-0' ? failing('upstream_truncated') : null)
      return nameOf(slot)
    })
    expect(names.filter((name) => name === 'upstream-0')).toHaveLength(3)
  })

  test('is not blamed for clients that disconnect', () => {
    const simulation = createSimulation({ seed: 1, targets: ordered() })
    for (let round = 0; round < 10; round++) {
      const slot = simulation.take()
      if (round % 2 === 0) slot.answered()
      slot.end(failing('client_closed'))
      expect(nameOf(slot)).toBe('upstream-0')
    }
  })

  test('that asks for a pause gets one, up to the longest ejection', async () => {
    const simulation = createSimulation({ seed: 1, targets: ordered() })
    const pausing = (name: string) =>
      name === 'upstream-0' ? failing('rate_limit_exceeded', 20) : null
    expect(ask(simulation, pausing)).toEqual(['upstream-0', 'upstream-1'])
    await simulation.runFor(19_000)
    expect(ask(simulation, () => null)).toEqual(['upstream-1'])
    await simulation.runFor(2_000)
    expect(ask(simulation, () => null)).toEqual(['upstream-0'])
  })

  test('that asked for a pause is not ejected by its next failure', async () => {
    const simulation = createSimulation({ seed: 1, targets: ordered() })
    ask(simulation, (name) => (name === 'upstream-0' ? failing('rate_limit_exceeded', 1) : null))
    await simulation.runFor(2_000)
    expect(ask(simulation, firstDown('upstream_error'))).toEqual(['upstream-0', 'upstream-1'])
    expect(ask(simulation, () => null)).toEqual(['upstream-0'])
  })
})

describe('an ejection', () => {
  test('ends with one request on trial, and doubles up to the limit while that fails', async () => {
    const simulation = createSimulation({ seed: 1, targets: ordered() })
    const metAtS: number[] = []
    for (let second = 0; second < 300; second++) {
      // Several per second, of which one is on trial.
      for (let time = 0; time < 5; time++) {
        if (ask(simulation, firstDown('upstream_error'))[0] === 'upstream-0') metAtS.push(second)
      }
      await simulation.runFor(1_000)
    }
    expect(metAtS.slice(0, 3)).toEqual([0, 0, 0])
    expect(metAtS.slice(3)).toEqual([5, 15, 35, 75, 135, 195, 255])
  })

  test('has one request on trial at a time; a client that disconnects passes the trial on', async () => {
    const simulation = createSimulation({ seed: 1, targets: ordered() })
    for (let round = 0; round < 3; round++) ask(simulation, firstDown('upstream_error'))
    await simulation.runFor(5_000)
    const slots = Array.from({ length: 5 }, () => simulation.take())
    expect(slots.map(nameOf)).toEqual(['upstream-0', ...Array(4).fill('upstream-1')])
    slots[0]?.end(failing('client_closed'))
    expect(nameOf(simulation.take())).toBe('upstream-0')
    expect(nameOf(simulation.take())).toBe('upstream-1')
  })

  test('is followed by a gradual return', async () => {
    const simulation = createSimulation({ seed: 1, targets: ordered() })
    for (let round = 0; round < 3; round++) ask(simulation, firstDown('upstream_error'))
    await simulation.runFor(5_000)
    const shares: number[] = []
    for (let second = 0; second < 12; second++) {
      const met = Array.from({ length: 200 }, () => ask(simulation, () => null)[0])
      shares.push(met.filter((name) => name === 'upstream-0').length / met.length)
      await simulation.runFor(1_000)
    }
    for (const [second, share] of shares.entries()) {
      expect(Math.abs(share - Math.min(1, Math.max(0.1, second / 10)))).toBeLessThan(0.1)
    }
  })

  test('of all upstreams leaves them all in use, those that fail fast first', () => {
    const simulation = createSimulation({ seed: 1, targets: ordered() })
    const allDown = (name: string) =>
      failing(name === 'upstream-0' ? 'upstream_connect_timeout' : 'upstream_error')
    for (let round = 0; round < 3; round++) ask(simulation, allDown)
    const [first] = ask(simulation, allDown)
    expect(first).toBe('upstream-1')
    expect(
      ask(simulation, (name) => (name === 'upstream-0' ? null : failing('upstream_error'))),
    ).toEqual(['upstream-1', 'upstream-0'])
  })

  test('of the only upstream changes nothing', () => {
    const simulation = createSimulation({ seed: 1, targets: targetsOf(1) })
    for (let round = 0; round < 10; round++) {
      expect(ask(simulation, firstDown('upstream_connect_timeout'))).toHaveLength(4)
    }
  })
})

describe('the retry budget', () => {
  const retries = (simulation: Simulation, requests: number, failure: AppError) => {
    let allowed = 0
    for (let request = 0; request < requests; request++) {
      const slot = simulation.take()
      slot.end(failure)
      if (simulation.router.mayRetry(slot, failure, { isElsewhere: false })) allowed++
    }
    return allowed
  }

  test('is a share of the requests, beyond a number per second', async () => {
    const simulation = createSimulation({ seed: 1, targets: targetsOf(1) })
    const failure = failing('upstream_overloaded')
    // What was saved up, and a fifth of the requests.
    expect(retries(simulation, 100, failure)).toBe(100)
    expect(retries(simulation, 1_000, failure)).toBeLessThanOrEqual(225)
    await simulation.runFor(1_000)
    expect(retries(simulation, 0, failure)).toBe(0)
    const after = retries(simulation, 100, failure)
    expect(after).toBeGreaterThanOrEqual(29)
    expect(after).toBeLessThanOrEqual(31)
  })

  test('does not count requests that never reached an upstream, if another one takes them', () => {
    const simulation = createSimulation({ seed: 1, targets: targetsOf(1) })
    const failure = failing('upstream_unreachable')
    for (let request = 0; request < 1_000; request++) {
      const slot = simulation.take()
      slot.end(failure)
      expect(simulation.router.mayRetry(slot, failure, { isElsewhere: true })).toBe(true)
    }
  })
})

test('a full upstream is no reason for a fallback to another model', () => {
  const [own, other] = ordered()
  if (own === undefined || other === undefined) throw new Error('two targets')
  const given = { seed: 1, targets: [own, { ...other, isFallback: true }], maxInFlightOf: () => 1 }
  const simulation = createSimulation(given)
  const slot = simulation.take()
  expect(nameOf(slot)).toBe('upstream-0')
  expect(() => simulation.take()).toThrow('no capacity')
  slot.end(failing('upstream_connect_timeout'))
  expect(nameOf(simulation.take())).toBe('upstream-1')
})

test('a slot is released once, whatever its end', () => {
  const simulation = createSimulation({ seed: 1, targets: targetsOf(1) })
  const slot = simulation.take()
  expect(slot.state.upstream.inFlight).toBe(1)
  slot.end(failing('upstream_error'))
  slot.end(null)
  slot.answered()
  expect([slot.state.upstream.inFlight, slot.state.upstream.waiting.size]).toEqual([0, 0])
  expect(slot.state.firstEvent.samples).toBe(0)
})
