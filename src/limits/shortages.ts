import { AppError } from '#lib/errors.ts'
import type { RateLimits } from '#lib/rate-limits.ts'
import type { AppliedRate, AppliedSlot } from './plans.ts'

/** A limit that does not allow a call now. */
export type Shortage = (AppliedRate & { readonly amount: number }) | AppliedSlot

export function addRateShortages(
  found: Shortage[] | null,
  rates: readonly AppliedRate[],
  amount: number,
  nowMs: number,
): Shortage[] | null {
  if (amount === 0) return found
  let shortages = found
  for (const applied of rates) {
    if (applied.meter.available(nowMs) >= amount) continue
    shortages ??= []
    shortages.push({ ...applied, amount })
  }
  return shortages
}

export function addSlotShortages(
  found: Shortage[] | null,
  slots: readonly AppliedSlot[],
  nowMs: number,
): Shortage[] | null {
  let shortages = found
  for (const applied of slots) {
    if (applied.meter.available(nowMs) >= 1) continue
    shortages ??= []
    shortages.push(applied)
  }
  return shortages
}

/** Whether waiting helps: the limit is not smaller than what the call needs. */
export function isPossible(shortage: Shortage): boolean {
  return shortage.meter.limit >= ('amount' in shortage ? shortage.amount : 1)
}

/** Nobody knows when a slot is released; clients retry with a backoff of their own. */
const slotRetryS = 1
const retryMaxS = 3_600

/** The error of a refused call: the limit that holds longest decides. */
export function refusalOf(
  shortages: readonly Shortage[],
  { nowMs, rateLimits }: { nowMs: number; rateLimits: RateLimits },
): { readonly decisive: Shortage; readonly error: AppError } {
  const waits = shortages.map((shortage) => ({ shortage, waitS: waitSOf(shortage, nowMs) }))
  const longest = waits.reduce((a, b) => (b.waitS > a.waitS ? b : a))
  const { shortage: decisive, waitS } = longest
  const message = `${describe(decisive)} ${ownerOf[decisive.scope]} is reached`
  if (!isPossible(decisive)) {
    const needed = 'amount' in decisive ? `; the request needs about ${decisive.amount}` : ''
    return {
      decisive,
      error: new AppError('request_exceeds_limit', `${message}${needed}.`, { rateLimits }),
    }
  }
  const retryAfterS = Math.min(retryMaxS, Math.max(1, Math.ceil(waitS)))
  return {
    decisive,
    error: new AppError('rate_limit_exceeded', `${message}; retry in ${retryAfterS} s.`, {
      retryAfterS,
      rateLimits,
    }),
  }
}

function waitSOf(shortage: Shortage, nowMs: number): number {
  if (!isPossible(shortage)) return Number.POSITIVE_INFINITY
  return 'amount' in shortage ? shortage.meter.waitMs(shortage.amount, nowMs) / 1_000 : slotRetryS
}

const units: Record<Shortage['name'], string> = {
  requests_per_minute: 'requests per minute',
  input_tokens_per_minute: 'input tokens per minute',
  output_tokens_per_minute: 'output tokens per minute',
  speech_minutes_per_hour: 'minutes of speech per hour',
  concurrent_generations: 'generations at the same time',
  speech_sessions: 'speech sessions at the same time',
}

function describe({ name, meter }: Shortage): string {
  return `The limit of ${meter.limit} ${units[name]}`
}

const ownerOf = { key: 'of this API key', user: 'of this user', model: 'of this model' } as const
