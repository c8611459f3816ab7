import { repeat } from '#lib/repeat.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import type { BudgetStore, BudgetTotal } from './budget-store.ts'

/** The use of one owner in one day or month. */
export type Counter = {
  readonly key: string
  readonly owner: string
  /** `2026-11-23` or `2026-11`. */
  readonly period: string
  /** As of the last answer of the database, all processes included. */
  stored: Use
  /** Being written, and not yet written. */
  sent: Use
  unsent: Use
  isLoaded: boolean
  isWarned: boolean
  usedAtMs: number
}

export type Use = { tokens: number; costNanos: number }

/** With the write itself, a killed process loses at most a second of use. */
const flushEveryMs = 500
/** How long the total of an owner is refreshed after its last call, for the use of other processes. */
const refreshedMs = 10_000
const idleMs = 60_000
/** A first call waits this long for the use so far; without it, the call goes on. */
const loadWaitMs = 1_000
/** Owners and periods in memory; further ones are not counted, which is logged. */
const countersMax = 200_000
const sweepEveryFlushes = 7_200
const keptMonths = 14

/** Use per owner and period: counted in memory, written in batches, with the totals of all processes. */
export function createBudgetCounters(deps: {
  store: BudgetStore
  /** Runs after each write. */
  onFlushed: () => Promise<void>
  log: Pick<Log, 'warn'>
  clockMs: () => number
  now: () => Date
}) {
  const { store, log, clockMs, now } = deps
  const counters = new Map<string, Counter>()
  let generation = 0
  let flushes = 0
  let isFailing = false
  let running: Promise<void> | null = null

  const write = async () => {
    flushes++
    const nowMs = clockMs()
    const due = [...counters.values()].filter((counter) => isDue(counter, nowMs))
    for (const counter of due) {
      counter.sent = counter.unsent
      counter.unsent = nothing()
    }
    try {
      adopt(due, due.length === 0 ? [] : await store.charge(due.map(toCharge)))
      isFailing = false
    } catch (error) {
      // Its result is unknown: repeated, so use may be counted twice but is never lost.
      for (const counter of due) {
        counter.unsent.tokens += counter.sent.tokens
        counter.unsent.costNanos += counter.sent.costNanos
        counter.sent = nothing()
      }
      if (!isFailing) log.warn('use of budgets not written yet, repeating', { error })
      isFailing = true
      return
    }
    evictIdle(nowMs)
    // A call waits for the totals, and the end of the process for the write; not for these.
    try {
      await deps.onFlushed()
      if (flushes % sweepEveryFlushes === 1) await store.sweep(firstKeptPeriod(now()))
    } catch (error) {
      log.warn('warnings or sweep of budgets failed, repeating', { error })
    }
  }

  const adopt = (due: readonly Counter[], totals: readonly BudgetTotal[]) => {
    for (const counter of due) {
      counter.sent = nothing()
      counter.isLoaded = true
    }
    for (const { owner, period, tokens, costNanos, isWarned } of totals) {
      const counter = counters.get(keyOf(owner, period))
      if (counter === undefined) continue
      counter.stored = { tokens, costNanos }
      counter.isWarned ||= isWarned
    }
  }

  const evictIdle = (nowMs: number) => {
    const before = counters.size
    for (const counter of counters.values()) {
      if (nowMs - counter.usedAtMs >= idleMs && !isDue(counter, nowMs)) counters.delete(counter.key)
    }
    if (counters.size < before) generation++
  }

  const keep = (counter: Counter): Counter => {
    if (counters.size < countersMax) counters.set(counter.key, counter)
    else log.warn('budget not counted: too many owners', { owner: counter.owner })
    return counter
  }

  /** One write at a time. */
  const flush = async (): Promise<void> => {
    if (running !== null) await running
    running ??= write().finally(() => {
      running = null
    })
    await running
  }
  const flushing = repeat(flush, { everyMs: flushEveryMs, log, failed: 'budget write failed' })

  return {
    /** Changes when counters were evicted: references to them are stale. */
    generation: () => generation,
    size: () => counters.size,

    of(owner: string, period: string): Counter {
      const key = keyOf(owner, period)
      return (
        counters.get(key) ??
        keep({
          key,
          owner,
          period,
          stored: nothing(),
          sent: nothing(),
          unsent: nothing(),
          isLoaded: false,
          isWarned: false,
          usedAtMs: clockMs(),
        })
      )
    },

    /** Counts use. Returns the counter that has it: that of the call may be evicted while it runs. */
    add(given: Counter, { tokens, costNanos }: Use, nowMs: number): Counter {
      const counter = counters.get(given.key) ?? keep(given)
      counter.unsent.tokens += tokens
      counter.unsent.costNanos += costNanos
      counter.usedAtMs = nowMs
      return counter
    },

    /** Writes what was used, and reads the totals. */
    flush,

    /** Reads the totals of new counters. */
    async load(): Promise<void> {
      const loaded = flush().then(() => true)
      if (!(await orAfter(loaded, loadWaitMs, false))) isFailing = true
    },

    /** Whether the last write failed or did not end in time: totals are not waited for. */
    isFailing: () => isFailing,

    async close() {
      await flushing.stop()
      await orAfter(flush(), loadWaitMs, undefined)
    },
  }
}

function keyOf(owner: string, period: string): string {
  return `${owner} ${period}`
}

function nothing(): Use {
  return { tokens: 0, costNanos: 0 }
}

function isDue({ unsent, isLoaded, usedAtMs }: Counter, nowMs: number): boolean {
  const isUnsent = unsent.tokens > 0 || unsent.costNanos > 0
  return isUnsent || !isLoaded || nowMs - usedAtMs < refreshedMs
}

function toCharge({ owner, period, sent }: Counter) {
  return { owner, period, ...sent }
}

export function usedOf({ stored, sent, unsent }: Counter): Use {
  return {
    tokens: stored.tokens + sent.tokens + unsent.tokens,
    costNanos: stored.costNanos + sent.costNanos + unsent.costNanos,
  }
}

function firstKeptPeriod(at: Date): string {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() - keptMonths, 1))
    .toISOString()
    .slice(0, 7)
}
