import { repeat } from '#lib/repeat.ts'
import type { Log } from '#telemetry/log.ts'
import type { Answer, LeaseStore, RateAsk, SlotAsk } from './lease-store.ts'
import type { Meters } from './meters.ts'
import type { MeterGroup } from './plans.ts'
import type { RateMeter } from './rate-meter.ts'
import { isPossible, type Shortage } from './shortages.ts'
import type { LeaseTerm, SlotMeter } from './slot-meter.ts'

/** A lease is renewed this often, and ends here one renewal before it ends in the database. */
const renewalsPerLease = 6
/** A share without use for this long is returned. */
const idleMs = 1_000
/** All processes together keep at most this part of a limit in reserve. */
const reservePart = 1 / 20
/** Slots above so many reserves are returned at once, others with the next renewal. */
const returnedAboveReserves = 2
/** Units that other processes return are noticed after this time. */
const emptyMaxMs = 250
/** The slot of a call that has just ended may be on its way back. */
const slotRetryMs = 25
const sweepEveryRenewals = 60

export type Leases = ReturnType<typeof createLeases>

/**
 * Shares of limits that this process leases from the database. A small limit is leased unit by unit;
 * of a larger one a reserve is kept, so that calls rarely wait. One exchange runs at a time, for all
 * limits at once.
 */
export function createLeases(deps: {
  meters: Meters
  store: LeaseStore
  term: LeaseTerm
  leaseMs: number
  log: Pick<Log, 'warn' | 'info'>
  clockMs: () => number
  sleep: (ms: number) => Promise<void>
  /** Whether users, groups or models have limits. */
  isConfigured: () => boolean
  onExchange: (outcome: 'ok' | 'failed') => void
}) {
  const { meters, store, term, leaseMs, log, clockMs } = deps
  const renewEveryMs = leaseMs / renewalsPerLease
  /** Meters with a share, or that want one. */
  const rates = new Set<RateMeter>()
  const slots = new Set<SlotMeter>()
  /** To be part of the next exchange. */
  const dueRates = new Set<RateMeter>()
  const dueSlots = new Set<SlotMeter>()
  let processes = 1
  let renewals = 0
  let running: Promise<void> | null = null
  let next: Promise<void> | null = null
  let isClosed = false
  /** Whether the database knows of this process. */
  let isRegistered = false
  /** The next exchange frees the slots that this process does not know to hold. */
  let isRenewal = false

  const reserveOf = ({ limit }: { limit: number }) => Math.floor((limit * reservePart) / processes)

  const askRate = (meter: RateMeter, nowMs: number): RateAsk | null => {
    const { share, key, limit, periodMs } = meter
    if (share === null) return null
    const { wanted, least } = share
    share.wanted = 0
    share.least = Number.POSITIVE_INFINITY
    const isIdle = share.waiting === 0 && nowMs - share.spentAtMs >= idleMs
    const returned = isIdle ? Math.max(0, share.units) : 0
    const owed = share.owed + share.takeDebt()
    share.units -= returned
    share.owed = 0
    const missing = Math.max(0, wanted - share.units)
    const target = isIdle ? 0 : missing + Math.max(0, reserveOf(meter) - share.units)
    if (owed === 0 && returned === 0 && target <= 0) return null
    const needed = Math.max(1, Math.min(least, wanted) - share.units)
    return {
      key,
      limit,
      periodMs,
      owed,
      returned,
      wanted: target,
      least: wanted === 0 ? 1 : needed,
    }
  }

  const askSlot = (meter: SlotMeter, nowMs: number): SlotAsk | null => {
    const { share, key, limit, inUse } = meter
    if (share === null) return null
    const isIdle = share.waiting === 0 && nowMs - share.takenAtMs >= idleMs
    const wanted = inUse + share.waiting + (isIdle ? 0 : reserveOf(meter))
    const held = share.usable(nowMs)
    const isKnown = !term.isOutage && held === share.held
    if (isKnown && wanted === held) return null
    // What is on its way back is not used any more.
    share.held = Math.min(share.held, Math.max(wanted, inUse))
    return { key, limit, inUse, wanted }
  }

  const adopt = ({ rates: leased, slots: held, processes: count }: Answer, askedAtMs: number) => {
    processes = Math.max(1, count)
    term.validUntilMs = askedAtMs + leaseMs - renewEveryMs
    const nowMs = clockMs()
    for (const { key, granted, used } of leased) {
      const meter = meters.rates.get(key)
      if (meter?.share == null) continue
      meter.share.units += granted
      meter.adopt(used, nowMs)
      const untilOneMs = (used + 1 - meter.limit) / meter.perMs
      meter.share.emptyUntilMs = nowMs + Math.min(emptyMaxMs, Math.max(0, untilOneMs))
    }
    for (const { key, held: count } of held) {
      const share = meters.slots.get(key)?.share
      if (share != null) share.held = count
    }
    for (const meter of rates) if (meter.share?.isEmpty() && meter.open === 0) rates.delete(meter)
    for (const meter of slots) if (meter.isIdle()) slots.delete(meter)
  }

  const beginOutage = (asked: { rates: readonly RateMeter[]; slots: readonly SlotMeter[] }) => {
    const nowMs = clockMs()
    for (const meter of asked.rates) meter.share?.beginOutage(meter, 1 / processes, nowMs)
    for (const { share, limit } of asked.slots) {
      if (share === null) continue
      share.held = Math.max(share.held, Math.min(limit, Math.max(1, Math.floor(limit / processes))))
    }
  }

  const endOutage = () => {
    if (!term.isOutage) return
    term.isOutage = false
    for (const { share } of rates) share?.endOutage()
    log.info('leases of limits renewed after an outage of the database')
  }

  const addAll = () => {
    for (const meter of rates) dueRates.add(meter)
    for (const meter of slots) dueSlots.add(meter)
  }

  const exchange = async () => {
    const askedAtMs = clockMs()
    // The database may have given its slots to others.
    if (askedAtMs >= term.validUntilMs) addAll()
    const rateAsks = [...dueRates].flatMap((meter) => askRate(meter, askedAtMs) ?? [])
    const slotAsks = [...dueSlots].flatMap((meter) => askSlot(meter, askedAtMs) ?? [])
    const holding = isRenewal ? [...slots].filter(isHolding).map(({ key }) => key) : null
    dueRates.clear()
    dueSlots.clear()
    try {
      const answer = await store.exchange(rateAsks, slotAsks, holding)
      isRegistered = true
      if (holding !== null) isRenewal = false
      endOutage()
      adopt(answer, askedAtMs)
      deps.onExchange('ok')
    } catch (error) {
      deps.onExchange('failed')
      // Reported again: counted twice at worst. Returned units are lost, which is safe.
      for (const { key, owed } of rateAsks) {
        const share = meters.rates.get(key)?.share
        if (share != null) share.owed += owed
      }
      if (!term.isOutage) log.warn('leases of limits not renewed: the last shares go on', { error })
      term.isOutage = true
      beginOutage({ rates: [...rates], slots: [...slots] })
    }
  }

  /** Resolves when an exchange that started from now on has ended. */
  const soon = (): Promise<void> => {
    if (next !== null) return next
    if (running === null) {
      running = exchange().finally(() => {
        running = null
      })
      return running
    }
    next = running
      .catch(() => {})
      .then(() => {
        next = null
        return soon()
      })
    return next
  }

  const inBackground = () => {
    if (next !== null || isClosed || term.isOutage) return
    soon().catch((error: unknown) => log.warn('exchange of leases failed', { error }))
  }

  const renew = async () => {
    // A process without shares counts, too: in an outage it has its part of each limit.
    if (!isRegistered && !deps.isConfigured()) return
    renewals++
    isRenewal = true
    addAll()
    await soon()
    if (renewals % sweepEveryRenewals === 0) await store.sweep()
  }
  const renewing = repeat(renew, {
    everyMs: renewEveryMs,
    log,
    failed: 'renewal of leases failed',
  })

  return {
    /** Whether asking the database may help. */
    mayLease: (shortages: readonly Shortage[], nowMs: number): boolean =>
      shortages.every(
        (shortage) =>
          isPossible(shortage) &&
          !('amount' in shortage && nowMs < (shortage.meter.share?.emptyUntilMs ?? 0)),
      ),

    /**
     * A call with these limits waits for a lease, or has taken what it was given. Until then nothing of
     * any of them is returned: an exchange that was due begins before the call resumes, and one limit
     * may be leased while another is missing.
     */
    countWaiting({ rates, slots }: MeterGroup, change: 1 | -1): void {
      for (const { share } of rates) if (share !== null) share.waiting += change
      for (const { share } of slots) if (share !== null) share.waiting += change
    },

    /** Leases what is missing; resolves when the database has answered, or is unreachable. */
    async lease(shortages: readonly Shortage[], round: number): Promise<void> {
      if (round > 1 && shortages.some((shortage) => !('amount' in shortage))) {
        await deps.sleep(slotRetryMs)
      }
      for (const shortage of shortages) {
        if ('amount' in shortage) rates.add(shortage.meter)
        else slots.add(shortage.meter)
      }
      if (term.isOutage) return beginOutage({ rates: [...rates], slots: [...slots] })
      for (const shortage of shortages) {
        if ('amount' in shortage) {
          dueRates.add(shortage.meter)
          shortage.meter.share?.want(shortage.amount)
        } else {
          dueSlots.add(shortage.meter)
        }
      }
      await soon()
    },

    /** Leases more in the background before a share runs out. */
    refill(group: MeterGroup, nowMs: number): void {
      let isDue = false
      for (const meter of group.rates) {
        const { share } = meter
        if (share === null) continue
        rates.add(meter)
        if (share.units * 2 >= reserveOf(meter) || nowMs < share.emptyUntilMs) continue
        dueRates.add(meter)
        isDue = true
      }
      for (const meter of group.slots) slots.add(meter)
      if (isDue) inBackground()
    },

    /** Reports debts and returns slots in the background. */
    settled(group: MeterGroup): void {
      let isDue = false
      for (const meter of group.rates) {
        if ((meter.share?.units ?? 0) >= 0) continue
        rates.add(meter)
        dueRates.add(meter)
        isDue = true
      }
      for (const meter of group.slots) {
        // A renewal returns what is less: otherwise every end of a call that runs beside others would.
        const spare = (meter.share?.held ?? 0) - meter.inUse
        if (spare <= returnedAboveReserves * reserveOf(meter)) continue
        dueSlots.add(meter)
        isDue = true
      }
      if (isDue) inBackground()
    },

    async close(): Promise<void> {
      isClosed = true
      await renewing.stop()
      await running?.catch(() => {})
      if (!isRegistered) return
      for (const { share } of rates) if (share !== null) share.spentAtMs = Number.NEGATIVE_INFINITY
      addAll()
      await exchange().catch(() => {})
      await store.leave().catch(() => {})
    },
  }
}

function isHolding({ share, inUse }: SlotMeter): boolean {
  return inUse > 0 || (share?.held ?? 0) > 0
}
