import { describe, expect, test } from 'bun:test'
import type { Probes } from '#inference/routing/checks.ts'
import { stateOfUpstream } from '#inference/routing/describe.ts'
import { defaultHealthSettings } from '#inference/routing/settings.ts'
import { Cancellation } from '#lib/cancellation.ts'
import {
  createSimulation,
  failing,
  nameOf,
  orderedTargets as ordered,
  type Simulation,
  targetsOf,
} from './simulation.ts'

/** What callers of an upstream notice that stops to respond, in virtual time. */

/** Checks of an upstream that can be switched off. */
function scriptedProbes() {
  const script = { reaches: true, generates: true, probes: 0 }
  const probes: Probes = {
    async reach() {
      script.probes++
      return script.reaches
    },
    async generate() {
      script.probes++
      return script.generates
    },
  }
  return { script, probes }
}

describe('an upstream that sends nothing', () => {
  /** One caller per `everyMs`; returns those that waited at `upstream-0`, and how long. */
  async function meet(
    { router, ...simulation }: Simulation,
    { everyMs, forMs }: { everyMs: number; forMs: number },
  ): Promise<number[]> {
    const waitedMs: number[] = []
    const call = () => {
      const slot = simulation.take()
      if (nameOf(slot) !== 'upstream-0') {
        simulation.after(100, () => slot.answered())
        simulation.after(200, () => slot.end(null))
        return
      }
      const cancellation = new Cancellation()
      slot.cancellation = cancellation
      cancellation.addEventListener('abort', () => {
        waitedMs.push(simulation.nowMs() - slot.startedAtMs)
        slot.end(failing('upstream_first_event_timeout'))
      })
    }
    for (let atMs = 0; atMs < forMs; atMs += everyMs) simulation.after(atMs, call)
    for (let atMs = 0; atMs < forMs; atMs += 250) simulation.after(atMs, router.check)
    await simulation.runFor(forMs)
    return waitedMs
  }

  test('is suspect while it is checked, and then ejected', async () => {
    const reach = Promise.withResolvers<boolean>()
    const probes: Probes = { reach: () => reach.promise, generate: async () => true }
    const simulation = createSimulation({ seed: 1, targets: ordered(), probes })
    const { router } = simulation
    const slot = simulation.take()
    slot.cancellation = new Cancellation()
    const { upstream } = slot.state
    const state = () => stateOfUpstream(upstream, simulation.nowMs())
    expect(state()).toBe('available')
    await simulation.runFor(5_000)
    router.check()
    expect(state()).toBe('suspect')
    reach.resolve(false)
    await simulation.runFor(0)
    expect(state()).toBe('ejected')
  })

  test('costs one caller two seconds, once', async () => {
    const { script, probes } = scriptedProbes()
    script.reaches = false
    const simulation = createSimulation({ seed: 1, targets: ordered(), probes })
    const waitedMs = await meet(simulation, { everyMs: 2_000, forMs: 600_000 })
    expect(waitedMs).toHaveLength(1)
    expect(waitedMs[0]).toBeLessThan(2_000)
    // Further checks are requests of our own, at growing intervals.
    expect(script.probes).toBeLessThan(16)
    expect(script.probes).toBeGreaterThan(8)
  })

  test('costs only the callers of its first moments, who all move together', async () => {
    const { script, probes } = scriptedProbes()
    script.reaches = false
    const simulation = createSimulation({ seed: 1, targets: ordered(), probes })
    const waitedMs = await meet(simulation, { everyMs: 50, forMs: 120_000 })
    expect(Math.max(...waitedMs)).toBeLessThan(2_000)
    // Until the check: those of 1 to 1.25 s.
    expect(waitedMs.length).toBeLessThanOrEqual(26)
  })

  test('is left alone while a check gets a response', async () => {
    const { script, probes } = scriptedProbes()
    const simulation = createSimulation({ seed: 1, targets: ordered(), probes })
    const waitedMs = await meet(simulation, { everyMs: 40_000, forMs: 100_000 })
    expect(waitedMs).toEqual([])
    expect(script.probes).toBeGreaterThan(10)
  })

  test('although it responds to checks, is judged by its usual times', async () => {
    const { script, probes } = scriptedProbes()
    const simulation = createSimulation({ seed: 1, targets: ordered(), probes })
    for (let round = 0; round < 20; round++) {
      const slot = simulation.take()
      await simulation.runFor(300)
      slot.answered()
      slot.end(null)
    }
    script.generates = false
    const waitedMs = await meet(simulation, { everyMs: 40_000, forMs: 600_000 })
    // The check is a generation, so no second caller pays.
    expect(waitedMs).toHaveLength(1)
    expect(waitedMs[0]).toBeGreaterThanOrEqual(defaultHealthSettings.patienceMs)
    expect(waitedMs[0]).toBeLessThan(defaultHealthSettings.patienceMs + 1_000)
    script.generates = true
    await meet(simulation, { everyMs: 120_000, forMs: 120_000 })
    expect(nameOf(simulation.take())).toBe('upstream-0')
  })

  test('is not checked for a call that has nowhere else to go', async () => {
    const { script, probes } = scriptedProbes()
    const simulation = createSimulation({ seed: 1, targets: targetsOf(1), probes })
    expect(await meet(simulation, { everyMs: 1_000, forMs: 100_000 })).toEqual([])
    expect(script.probes).toBe(0)
  })
})
