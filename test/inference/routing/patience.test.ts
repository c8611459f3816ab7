import { describe, expect, test } from 'bun:test'
import type { Probes } from '#inference/routing/checks.ts'
import type { Slot } from '#inference/routing/slot.ts'
import { Cancellation } from '#lib/cancellation.ts'
import { createSimulation, orderedTargets, targetsOf } from './simulation.ts'

/** When an attempt without output is moved, or its upstream checked, to the millisecond. */

type Usual = { readonly form: Slot['form']; readonly samples: number; readonly ms: number }

/** An attempt at an upstream with these usual times. */
async function startAttempt(usual: Usual, probes?: Probes, targets = orderedTargets()) {
  const probing = probes === undefined ? {} : { probes }
  const simulation = createSimulation({ seed: 1, targets, ...probing })
  await simulation.runFor(10_000)
  const slot = simulation.take()
  slot.form = usual.form
  const cancellation = new Cancellation()
  slot.cancellation = cancellation
  for (let sample = 0; sample < usual.samples; sample++) {
    const { firstEvent, whole } = slot.state
    if (usual.form === 'whole') whole.add(usual.ms)
    else firstEvent.add(usual.ms)
  }
  const checkAt = async (ms: number) => {
    await simulation.runFor(slot.startedAtMs + ms - simulation.nowMs())
    simulation.router.check()
    await simulation.runFor(0)
  }
  return { slot, simulation, checkAt, isMoved: () => cancellation.aborted }
}

describe('an attempt without output is moved', () => {
  test.each<[Slot['form'], number, number, number]>([
    ['first-event', 0, 0, 120_000],
    ['first-event', 4, 100, 120_000],
    ['first-event', 5, 100, 30_000],
    // Rarely more than 18 s.
    ['first-event', 5, 10_000, 144_000],
    ['whole', 5, 100, 60_000],
    ['whole', 5, 10_000, 144_000],
  ])(
    'of the form %s with %d samples of %d ms after %d ms',
    async (form, samples, ms, movesAtMs) => {
      const { slot, checkAt, isMoved } = await startAttempt({ form, samples, ms })
      await checkAt(movesAtMs - 1)
      expect([isMoved(), slot.state.health.isEjected]).toEqual([false, false])
      await checkAt(movesAtMs)
      expect([isMoved(), slot.state.health.isEjected]).toEqual([true, true])
      expect([slot.state.health.isSilent, slot.state.upstream.health.isEjected]).toEqual([
        true,
        false,
      ])
    },
  )

  test.each<[Slot['form'], number]>([
    ['whole', 4],
    ['count', 5],
  ])('never if it is of the form %s with %d samples', async (form, samples) => {
    const { checkAt, isMoved } = await startAttempt({ form, samples, ms: 100 })
    await checkAt(3_600_000)
    expect(isMoved()).toBe(false)
  })

  test('never without another target', async () => {
    const usual = { form: 'first-event', samples: 5, ms: 100 } as const
    const { checkAt, isMoved } = await startAttempt(usual, undefined, targetsOf(1))
    await checkAt(3_600_000)
    expect(isMoved()).toBe(false)
  })

  test('later if its target gave other output meanwhile', async () => {
    const usual = { form: 'first-event', samples: 5, ms: 100 } as const
    const { slot, checkAt, isMoved } = await startAttempt(usual)
    slot.state.heardAtMs = slot.startedAtMs + 1_000
    await checkAt(30_999)
    expect(isMoved()).toBe(false)
    await checkAt(31_000)
    expect(isMoved()).toBe(true)
  })
})

describe('a silent upstream is checked', () => {
  function countingProbes(reaches: () => Promise<boolean> = async () => true) {
    const counted = { reach: 0 }
    const probes: Probes = {
      reach() {
        counted.reach++
        return reaches()
      },
      generate: async () => true,
    }
    return { counted, probes }
  }

  test.each<[Slot['form'], number, number, number]>([
    ['first-event', 0, 0, 1_000],
    ['first-event', 4, 1_000, 1_000],
    // Rarely more than 1.8 s.
    ['first-event', 5, 1_000, 3_600],
    ['whole', 5, 1_000, 3_600],
  ])(
    'of the form %s with %d samples of %d ms after %d ms',
    async (form, samples, ms, checkedAtMs) => {
      const { counted, probes } = countingProbes()
      const { checkAt } = await startAttempt({ form, samples, ms }, probes)
      await checkAt(checkedAtMs - 1)
      expect(counted.reach).toBe(0)
      await checkAt(checkedAtMs)
      expect(counted.reach).toBe(1)
      // It was found well.
      await checkAt(checkedAtMs + 4_999)
      expect(counted.reach).toBe(1)
      await checkAt(checkedAtMs + 5_000)
      expect(counted.reach).toBe(2)
    },
  )

  test('once at a time, and is ejected unless it is heard meanwhile', async () => {
    const end = Promise.withResolvers<boolean>()
    const { counted, probes } = countingProbes(() => end.promise)
    const usual = { form: 'first-event', samples: 0, ms: 0 } as const
    const { slot, simulation, checkAt, isMoved } = await startAttempt(usual, probes)
    const { upstream } = slot.state
    await checkAt(1_000)
    await checkAt(20_000)
    expect([counted.reach, upstream.isSuspect, upstream.isBeingProbed]).toEqual([1, true, true])
    slot.answered()
    end.resolve(false)
    await simulation.runFor(0)
    expect([upstream.isSuspect, upstream.isBeingProbed, upstream.health.isEjected]).toEqual([
      false,
      false,
      false,
    ])
    expect(isMoved()).toBe(false)
  })

  test('and its attempts are moved if it does not respond', async () => {
    const { probes } = countingProbes(async () => false)
    const usual = { form: 'first-event', samples: 0, ms: 0 } as const
    const { slot, checkAt, isMoved } = await startAttempt(usual, probes)
    await checkAt(1_000)
    const { health } = slot.state.upstream
    expect([isMoved(), health.isEjected, health.isSilent]).toEqual([true, true, true])
  })
})
