import { estimateInput, estimateUsage } from '#inference/call-estimate.ts'
import type { GenerationJob } from '#inference/inference.ts'
import type { CallRecord } from '#inference/open-call.ts'
import { jitteredBackoffMs } from '#lib/backoff.ts'
import { sqlStateOf } from '#lib/sql-state.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import type { MetricRegistry } from '#telemetry/metrics.ts'
import { usageMetrics } from './metrics.ts'
import {
  type Moment,
  type PendingUse,
  type PriceOf,
  type SpeechUse,
  toUsageRecord,
  type UsageRecord,
} from './record.ts'

/** Records that one statement writes; its id makes it repeatable. */
export type UsageBatch = { readonly id: string; readonly records: readonly UsageRecord[] }

export type Ledger = ReturnType<typeof createLedger>

type LedgerDeps = {
  /** Must do nothing when it is repeated with the records of an earlier call. */
  write(batch: UsageBatch): Promise<unknown>
  priceOf: PriceOf
  log: Pick<Log, 'warn' | 'error'>
  metrics: Pick<MetricRegistry, 'counter' | 'gauge'>
  now: () => Date
}

/** From the first record of a batch to its write: with the write itself, what a killed process loses. */
const flushMs = 100
const recordsPerBatchMax = 1_000
/** Records in memory while the database is unavailable: 60 MB at most. Further ones are dropped. */
const waitingMax = 50_000
const writeMsMax = 5_000
const backoff = { firstMs: 100, maxMs: 2_000 }
/** How long a process that ends waits for the database. */
const closeMsMax = 5_000

/**
 * Collects the usage of this process and writes it in batches. Requests never wait for it. A write whose
 * result is unknown is repeated, so every record is written once.
 */
export function createLedger({ write, priceOf, log, metrics, now }: LedgerDeps) {
  const written = metrics.counter(usageMetrics.written)
  const dropped = metrics.counter(usageMetrics.dropped)
  let pending: PendingUse[] = []
  const batches: UsageBatch[] = []
  /** Records in `batches`. */
  let batched = 0
  metrics.gauge(usageMetrics.pending, () => pending.length + batched)
  let timer: Timer | undefined
  let writing: Promise<void> | undefined
  let isClosed = false
  let isFailing = false
  let isFull = false

  function push(use: PendingUse): void {
    if (pending.length + batched >= waitingMax) {
      drop(1)
      return
    }
    pending.push(use)
    timer ??= setTimeout(flush, flushMs)
  }

  function drop(count: number): void {
    dropped.add(count)
    if (!isFull) log.error('usage records dropped: the database does not accept them')
    isFull = true
  }

  /** Objects of requests are released here, also while the database is unavailable. */
  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const at: Moment = { nowMs: performance.now(), wallMs: now().getTime() }
    const records = pending.map((use) => toUsageRecord(use, at, priceOf))
    pending = []
    for (let start = 0; start < records.length; start += recordsPerBatchMax) {
      addBatch(records.slice(start, start + recordsPerBatchMax))
    }
    writing ??= writeAll().finally(() => {
      writing = undefined
    })
  }

  function addBatch(records: readonly UsageRecord[]): void {
    batches.push({ id: Bun.randomUUIDv7(), records })
    batched += records.length
  }

  async function writeAll(): Promise<void> {
    let failures = 0
    for (let batch = batches[0]; batch !== undefined; batch = batches[0]) {
      try {
        await withTimeLimit(write(batch), writeMsMax, () => new Error('the write took too long'))
        written.add(batch.records.length)
        remove(batch)
        failures = 0
        isFailing = false
        isFull = false
      } catch (error) {
        if (isRefusal(error)) {
          divide(batch, error)
          continue
        }
        // Log the first of consecutive failures only: a database may be down for hours.
        if (!isFailing) log.warn('usage records not written yet, repeating', { error })
        isFailing = true
        failures++
        await pause(jitteredBackoffMs(failures, backoff))
      }
    }
  }

  function remove(batch: UsageBatch): void {
    batches.shift()
    batched -= batch.records.length
  }

  /** Isolates a record that the database refuses from the others. */
  function divide(batch: UsageBatch, error: unknown): void {
    const { records } = batch
    remove(batch)
    if (records.length === 1) {
      drop(1)
      log.error('usage record refused by the database', {
        request_id: records[0]?.requestId,
        error,
      })
      return
    }
    const middle = records.length >> 1
    addBatch(records.slice(0, middle))
    addBatch(records.slice(middle))
  }

  let wake = () => {}
  /** Ends early when the process ends. */
  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const pauseTimer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(pauseTimer)
        resolve()
      }
    })
  }

  return {
    /** The end of a call; `job` is null unless it was a generation. */
    addCall(record: CallRecord, job: GenerationJob | null): void {
      const isUnreported = record.usage === null && record.firstEventMs !== null
      if (job === null || !isUnreported) push(record)
      else push({ ...record, usage: estimateUsage(record, estimateInput(job.request)) })
    },
    addSpeech: (use: SpeechUse): void => push(use),
    /** Records that are not in the database yet. */
    waiting: () => pending.length + batched,
    /** Writes what is pending, or gives up when the database stays unavailable. */
    async close(): Promise<void> {
      if (isClosed) return
      isClosed = true
      flush()
      wake()
      const late = () => new Error('the database is unavailable')
      try {
        await withTimeLimit(writing ?? Promise.resolve(), closeMsMax, late)
      } catch (error) {
        const lost = pending.length + batched
        dropped.add(lost)
        log.error('usage records lost at shutdown', { records: lost, error })
      }
      batches.length = 0
    },
  }
}

/** SQLSTATE classes of statements that fail again: 22 data, 23 constraints. */
function isRefusal(error: unknown): boolean {
  return /^2[23]/.test(sqlStateOf(error) ?? '')
}
