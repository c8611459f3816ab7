import { expect, test } from 'bun:test'
import {
  createExportQueue,
  type ExportResult,
  type SpanOutcome,
} from '#telemetry/tracing/export-queue.ts'
import { RecordedSpan } from '#telemetry/tracing/recorded-span.ts'
import { eventually } from '#test/support/eventually.ts'

const place = { traceId: '0'.repeat(31), parentId: null, isParentRemote: false, tracestate: null }
const sink = { content: null, now: () => new Date(0), ended() {} }
const span = () => new RecordedSpan(sink, place, 'a span', {})

function queueOf(
  send: (count: number) => Promise<ExportResult>,
  settings: { queueSpansMax?: number; batchSpansMax?: number; batchDelayMs?: number } = {},
) {
  const counts: Partial<Record<SpanOutcome, number>> = {}
  const queue = createExportQueue(
    (spans) => send(spans.length),
    { queueSpansMax: 10, batchSpansMax: 4, batchDelayMs: 3_600_000, ...settings },
    {
      count: (outcome, more) => {
        counts[outcome] = (counts[outcome] ?? 0) + more
      },
      failed() {},
    },
  )
  const add = (count: number) => {
    for (let at = 0; at < count; at++) queue.ended(span())
  }
  return { queue, counts, add }
}

const sent: ExportResult = { kind: 'sent', rejected: 0 }

test('a full batch is exported at once, one export at a time', async () => {
  const batches: number[] = []
  let running = 0
  let runningMax = 0
  const { queue, counts, add } = queueOf(async (count) => {
    runningMax = Math.max(runningMax, ++running)
    batches.push(count)
    await Bun.sleep(1)
    running--
    return sent
  })
  add(9)
  await eventually('two batches are sent', () => counts.exported === 8)
  expect([batches, runningMax, queue.waiting()]).toEqual([[4, 4], 1, 1])
})

test('beyond the bound spans are dropped and counted, while the collector hangs', async () => {
  const { queue, counts, add } = queueOf(() => new Promise(() => {}))
  add(25)
  expect(queue.waiting()).toBe(10)
  expect(counts.queue_full).toBe(15)
  queue.close()
  expect(counts.failed).toBe(10)
})

test('a refused batch is given up, and the next one is sent', async () => {
  const results: ExportResult[] = [
    { kind: 'failed', isRetryable: false, reason: 'status 400' },
    { kind: 'sent', rejected: 1 },
  ]
  const { counts, add } = queueOf(async () => results.shift() ?? sent)
  add(8)
  await eventually('both are settled', () => counts.exported === 3)
  expect(counts).toEqual({ failed: 4, exported: 3, rejected: 1 })
})

test('a batch that may be retried is sent again', async () => {
  const results: ExportResult[] = [{ kind: 'failed', isRetryable: true, reason: 'status 503' }]
  const { counts, add } = queueOf(async () => results.shift() ?? sent)
  add(4)
  await eventually('it is sent', () => counts.exported === 4)
  expect(counts.failed).toBeUndefined()
})

test('a flush sends what waits, and ends at its limit', async () => {
  const { queue, counts, add } = queueOf(async () => sent)
  add(3)
  await queue.flush(10_000)
  expect([counts.exported, queue.waiting()]).toEqual([3, 0])

  const hanging = queueOf(() => new Promise(() => {}))
  hanging.add(3)
  await hanging.queue.flush(1)
  expect(hanging.queue.waiting()).toBe(3)
})
