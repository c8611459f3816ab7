import { AppError } from '#lib/errors.ts'
import type { LimitValues } from './config.ts'
import { RateMeter } from './rate-meter.ts'
import { type LeaseTerm, SlotMeter } from './slot-meter.ts'

/** Whose limit it is. */
export type LimitScope = 'key' | 'user' | 'model'
type LimitName = Exclude<keyof LimitValues, 'stored_bytes'>

const minuteMs = 60_000
const hourMs = 3_600_000

export const periodsMs = {
  requests_per_minute: minuteMs,
  input_tokens_per_minute: minuteMs,
  output_tokens_per_minute: minuteMs,
  speech_minutes_per_hour: hourMs,
} satisfies Partial<Record<LimitName, number>>

export type RateName = keyof typeof periodsMs
export type SlotName = Exclude<LimitName, RateName>

/** Limits in force at the same time, over all users, keys and models. */
const metersMax = 100_000
/** Below this number, nothing is evicted. */
const metersKeptMin = 1_000

export type Meters = ReturnType<typeof createMeters>

/**
 * The meters of this process by scope, id and limit. An idle meter equals a new one, so it can be
 * evicted; one with any use never is.
 */
export function createMeters(options: {
  /** Null: this is the only process. */
  term: LeaseTerm | null
  clockMs: () => number
}) {
  const { term, clockMs } = options
  const isShared = term !== null
  const rates = new Map<string, RateMeter>()
  const slots = new Map<string, SlotMeter>()
  let sweepAtSize = metersKeptMin
  let generation = 0

  /** Amortised: the next sweep is due at twice the size that this one leaves. */
  const makeRoom = () => {
    if (rates.size + slots.size < sweepAtSize) return
    const nowMs = clockMs()
    for (const meter of rates.values()) if (meter.isIdle(nowMs)) rates.delete(meter.key)
    for (const meter of slots.values()) if (meter.isIdle()) slots.delete(meter.key)
    generation++
    const left = rates.size + slots.size
    sweepAtSize = Math.min(metersMax, Math.max(metersKeptMin, left * 2))
    if (left < metersMax) return
    throw new AppError('service_unavailable', 'Too many limits are in force; retry.', {
      retryAfterS: 1,
    })
  }

  return {
    rates: rates as ReadonlyMap<string, RateMeter>,
    slots: slots as ReadonlyMap<string, SlotMeter>,
    size: () => rates.size + slots.size,
    /** Changes when meters were evicted: references to them are stale. */
    generation: () => generation,

    rate(scope: LimitScope, id: string, name: RateName, limit: number): RateMeter {
      const key = `${scope}:${id}:${name}`
      const known = rates.get(key)
      if (known !== undefined) {
        known.limit = limit
        return known
      }
      makeRoom()
      const nowMs = clockMs()
      const meter = new RateMeter(key, limit, { periodMs: periodsMs[name], nowMs, isShared })
      rates.set(key, meter)
      return meter
    },

    slot(scope: LimitScope, id: string, name: SlotName, limit: number): SlotMeter {
      const key = `${scope}:${id}:${name}`
      const known = slots.get(key)
      if (known !== undefined) {
        known.limit = limit
        return known
      }
      makeRoom()
      const meter = new SlotMeter(key, limit, term)
      slots.set(key, meter)
      return meter
    },
  }
}
