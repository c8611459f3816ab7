import { orAfter } from '#lib/time-limit.ts'
import type { RecordedSpan, SpanSink } from './recorded-span.ts'

/** The result of one export: how many spans the collector took, and whether to try again. */
export type ExportResult =
  | { readonly kind: 'sent'; readonly rejected: number }
  | { readonly kind: 'failed'; readonly isRetryable: boolean; readonly reason: string }

/** Sends one batch; never rejects. */
export type Export = (spans: readonly RecordedSpan[]) => Promise<ExportResult>

export type SpanOutcome = 'exported' | 'queue_full' | 'failed' | 'rejected'

export type ExportQueue = Pick<SpanSink, 'ended'> & {
  /** Exports what waits, for at most this long. */
  flush(limitMs: number): Promise<void>
  close(): void
  waiting(): number
}

type Settings = {
  readonly queueSpansMax: number
  readonly batchSpansMax: number
  readonly batchDelayMs: number
}

const attemptsMax = 5
const retryMs = { first: 1_000, max: 16_000 }

/**
 * Spans until they are exported: bounded, one export at a time. A collector that is slow or unreachable
 * costs spans and never time of a request.
 */
export function createExportQueue(
  send: Export,
  { queueSpansMax, batchSpansMax, batchDelayMs }: Settings,
  report: {
    count(outcome: SpanOutcome, spans: number): void
    failed(reason: string): void
  },
): ExportQueue {
  let waiting: RecordedSpan[] = []
  let timer: Timer | undefined
  let sending: Promise<void> | null = null
  let isClosed = false
  let isFlushing = false

  function schedule(): void {
    if (isClosed || sending !== null || waiting.length === 0) return
    if (waiting.length >= batchSpansMax) start()
    else if (timer === undefined) {
      timer = setTimeout(start, batchDelayMs)
      timer.unref()
    }
  }

  function start(): void {
    clearTimeout(timer)
    timer = undefined
    if (sending !== null || waiting.length === 0) return
    sending = sendBatch().finally(() => {
      sending = null
      if (isFlushing) start()
      else schedule()
    })
  }

  async function sendBatch(): Promise<void> {
    // The end of a request does not wait for the encoding of a batch.
    await new Promise((resolve) => setImmediate(resolve))
    const batch = waiting.slice(0, batchSpansMax)
    let pauseMs = retryMs.first
    for (let attempt = 1; ; attempt++) {
      const result = await send(batch)
      if (result.kind === 'failed') report.failed(result.reason)
      const isLast = attempt === attemptsMax || isClosed || isFlushing
      if (result.kind === 'sent') {
        report.count('exported', batch.length - result.rejected)
        if (result.rejected > 0) report.count('rejected', result.rejected)
      } else if (result.isRetryable && !isLast) {
        await Bun.sleep(pauseMs)
        pauseMs = Math.min(pauseMs * 2, retryMs.max)
        continue
      } else {
        report.count('failed', batch.length)
      }
      waiting = waiting.slice(batch.length)
      return
    }
  }

  return {
    ended(span) {
      if (isClosed) return
      if (waiting.length >= queueSpansMax) {
        report.count('queue_full', 1)
        return
      }
      waiting.push(span)
      schedule()
    },
    async flush(limitMs) {
      isFlushing = true
      const done = async () => {
        while (waiting.length > 0 && !isClosed) {
          start()
          await sending
        }
      }
      await orAfter(done(), limitMs, undefined)
      isFlushing = false
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      if (waiting.length > 0) report.count('failed', waiting.length)
      waiting = []
    },
    waiting: () => waiting.length,
  }
}
