import { createRouter, type RouterOptions } from '#inference/routing/router.ts'
import type { Slot } from '#inference/routing/slot.ts'
import { nothingTried, type Tried } from '#inference/routing/usable.ts'
import type { Target } from '#inference/upstream.ts'
import { AppError, type ErrorKind } from '#lib/errors.ts'
import { makeRequestContext } from '#test/support/generation.ts'
import { target } from '#test/support/generations.ts'
import { seededRandom } from '#test/support/seeded-random.ts'

/** A router, its targets and its callers in virtual time. */

/** How an upstream treats one request: when it responds, and when it is done. */
export type Behaviour = (
  random: () => number,
  nowMs: number,
) => { firstEventMs: number; totalMs: number } | AppError

export function createSimulation(
  given: { seed: number; targets: readonly Target[] } & Omit<RouterOptions, 'nowMs' | 'random'>,
) {
  let nowMs = 0
  const random = seededRandom(given.seed)
  const events: { atMs: number; run: () => void }[] = []
  const router = createRouter({ ...given, nowMs: () => nowMs, random })
  const call = { context: makeRequestContext(), targets: given.targets }
  return {
    router,
    random,
    nowMs: () => nowMs,
    after(ms: number, run: () => void) {
      events.push({ atMs: nowMs + ms, run })
    },
    take(tried: Tried = nothingTried): Slot {
      const slot = router.take(call, tried)
      if (slot === null) throw new Error('no capacity')
      return slot
    },
    /** Runs everything that is due until then, in order. */
    async runFor(ms: number) {
      const untilMs = nowMs + ms
      for (;;) {
        let at = 0
        for (const [index, { atMs }] of events.entries()) {
          if (atMs < (events[at]?.atMs ?? 0)) at = index
        }
        const next = events[at]
        if (next === undefined || next.atMs > untilMs) break
        events.splice(at, 1)
        nowMs = next.atMs
        next.run()
        await Promise.resolve()
      }
      nowMs = untilMs
    },
  }
}

export type Simulation = ReturnType<typeof createSimulation>

/** Callers that send their next request when the last one has ended. Returns the requests per upstream. */
export async function closedLoop(
  simulation: Simulation,
  behaviours: Readonly<Record<string, Behaviour>>,
  { callers, forMs }: { callers: number; forMs: number },
): Promise<Record<string, number>> {
  const served = Object.fromEntries(Object.keys(behaviours).map((name) => [name, 0]))
  const { after, random, nowMs } = simulation
  const ask = () => {
    const slot = simulation.take()
    const { name } = slot.target.upstream
    const outcome = behaviours[name]?.(random, nowMs())
    if (outcome === undefined || outcome instanceof Error) throw new Error('unscripted')
    served[name] = (served[name] ?? 0) + 1
    after(outcome.firstEventMs, () => slot.answered())
    after(outcome.totalMs, () => {
      slot.end(null)
      ask()
    })
  }
  for (let caller = 0; caller < callers; caller++) after(random() * 10, ask)
  await simulation.runFor(forMs)
  return served
}

export function targetsOf(...weights: readonly number[]): Target[] {
  return weights.map((weight, index) => ({
    ...target('http://127.0.0.1:1/v1', `upstream-${index}`),
    tier: 0,
    weight,
  }))
}

/** Exponentially distributed around a mean, as times of real requests are. */
export const exponential = (random: () => number, meanMs: number) =>
  -Math.log(1 - random()) * meanMs

export const failing = (kind: ErrorKind, retryAfterS?: number) =>
  new AppError(kind, 'It failed.', retryAfterS === undefined ? {} : { retryAfterS })
export const nameOf = (slot: Slot) => slot.target.upstream.name

/** A preferred upstream and another one. */
export const orderedTargets = () => targetsOf(1, 1).map(({ tier: _, ...target }) => target)
