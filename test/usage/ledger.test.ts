import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { createMetricRegistry } from '#telemetry/metrics.ts'
import { renderMetrics } from '#telemetry/metrics-text.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { createLedger, type UsageBatch } from '#usage/ledger.ts'
import type { SpeechUse } from '#usage/record.ts'
import { ann } from './use.ts'

type Write = (batch: UsageBatch) => Promise<unknown>

let metrics: ReturnType<typeof createMetricRegistry>

beforeEach(() => {
  jest.useFakeTimers()
  metrics = createMetricRegistry({ seriesMax: 10 })
})
afterEach(() => {
  jest.useRealTimers()
})

function startLedger(write: Write) {
  const now = () => new Date(Date.UTC(2026, 10, 23, 10))
  return createLedger({ write, priceOf: () => null, log: quietLog, metrics, now })
}

let used = 0
const useOf = (given: Partial<SpeechUse> = {}): SpeechUse => ({
  kind: 'speech_session',
  requestId: `req_${used++}`,
  userId: ann,
  keyId: null,
  requestedModel: null,
  engine: 'demo',
  outcome: 'completed',
  errorKind: null,
  audioMs: 1_000,
  durationMs: 1_000,
  endedAtMs: performance.now(),
  ...given,
})

/** Lets promises settle, and the timers up to this time run. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    jest.advanceTimersByTime(50)
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
}

async function counted(): Promise<{ written: number; dropped: number }> {
  const text = renderMetrics(metrics.snapshot(), 'prometheus')
  const value = (name: string) =>
    Number(new RegExp(`^sluice_usage_records_${name}_total (\\d+)`, 'm').exec(text)?.[1])
  return { written: value('written'), dropped: value('dropped') }
}

/** Collects the ids of requests, and fails as `fail` says. */
function createTable(fail: (batch: UsageBatch) => Error | null = () => null) {
  const batches: UsageBatch[] = []
  return {
    batches,
    ids: () => batches.flatMap(({ records }) => records.map(({ requestId }) => requestId)),
    async write(batch: UsageBatch) {
      const failure = fail(batch)
      if (failure !== null) throw failure
      batches.push(batch)
    },
  }
}

const unavailable = () => Object.assign(new Error('no connection'), { code: 'CONNECTION_CLOSED' })
const invalid = () => Object.assign(new Error('invalid text'), { code: '22021' })

describe('the ledger', () => {
  test('writes the records of a tenth of a second in one batch', async () => {
    const table = createTable()
    const ledger = startLedger(table.write)
    for (let at = 0; at < 30; at++) ledger.addSpeech(useOf())
    await pass(50)
    expect(table.batches).toHaveLength(0)
    await pass(100)
    expect(table.batches.map(({ records }) => records.length)).toEqual([30])
    expect(new Set(table.batches[0]?.records.map(({ id }) => id)).size).toBe(30)
    expect(ledger.waiting()).toBe(0)
    expect(await counted()).toEqual({ written: 30, dropped: 0 })
    ledger.addSpeech(useOf())
    await pass(300)
    expect(table.batches).toHaveLength(2)
  })

  test('divides many records into batches of a thousand', async () => {
    const table = createTable()
    const ledger = startLedger(table.write)
    for (let at = 0; at < 2_500; at++) ledger.addSpeech(useOf())
    await pass(300)
    expect(table.batches.map(({ records }) => records.length)).toEqual([1_000, 1_000, 500])
  })

  test('knows when a call ended, although it is written later', async () => {
    const table = createTable()
    const ledger = startLedger(table.write)
    ledger.addSpeech(useOf({ endedAtMs: performance.now() - 60_000 }))
    await pass(300)
    const at = table.batches[0]?.records[0]?.endedAt.getTime() ?? 0
    expect(Math.abs(at - Date.UTC(2026, 10, 23, 9, 59))).toBeLessThan(1_000)
  })

  test('keeps records while the database is unavailable, and repeats the same batch', async () => {
    let isDown = true
    const tried: string[] = []
    const table = createTable(({ id }) => {
      tried.push(id)
      return isDown ? unavailable() : null
    })
    const ledger = startLedger(table.write)
    ledger.addSpeech(useOf({ requestId: 'first' }))
    await pass(1_000)
    ledger.addSpeech(useOf({ requestId: 'second' }))
    await pass(5_000)
    expect(tried.length).toBeGreaterThan(2)
    expect(new Set(tried).size).toBe(1)
    expect(ledger.waiting()).toBe(2)
    isDown = false
    await pass(3_000)
    expect(table.ids()).toEqual(['first', 'second'])
    expect(table.batches[0]?.id).toBe(tried[0] ?? '')
    expect(await counted()).toEqual({ written: 2, dropped: 0 })
  })

  test('repeats a write that hangs', async () => {
    let calls = 0
    const table = createTable()
    const ledger = startLedger(async (batch) => {
      calls += 1
      if (calls === 1) await new Promise(() => {})
      await table.write(batch)
    })
    ledger.addSpeech(useOf({ requestId: 'late' }))
    await pass(15_000)
    expect(table.ids()).toEqual(['late'])
  })

  test('drops and counts records beyond its limit', async () => {
    let isDown = true
    const table = createTable(() => (isDown ? unavailable() : null))
    const ledger = startLedger(table.write)
    for (let at = 0; at < 50_010; at++) {
      ledger.addSpeech(useOf())
      if (at % 10_000 === 0) await pass(300)
    }
    expect(ledger.waiting()).toBe(50_000)
    expect(await counted()).toEqual({ written: 0, dropped: 10 })
    isDown = false
    await pass(4_000)
    expect(table.ids()).toHaveLength(50_000)
    expect(await counted()).toEqual({ written: 50_000, dropped: 10 })
  })

  test('isolates a record that the database refuses', async () => {
    const table = createTable(({ records }) =>
      records.some(({ requestId }) => requestId === 'bad') ? invalid() : null,
    )
    const ledger = startLedger(table.write)
    const requestIds = Array.from({ length: 40 }, (_, at) => (at === 17 ? 'bad' : `good-${at}`))
    for (const requestId of requestIds) ledger.addSpeech(useOf({ requestId }))
    await pass(500)
    expect(table.ids().toSorted()).toEqual(requestIds.filter((id) => id !== 'bad').toSorted())
    expect(await counted()).toEqual({ written: 39, dropped: 1 })
  })

  test('writes what is pending when it closes', async () => {
    const table = createTable()
    const ledger = startLedger(table.write)
    ledger.addSpeech(useOf({ requestId: 'last' }))
    await ledger.close()
    expect(table.ids()).toEqual(['last'])
  })

  test('closes although the database is unavailable, and counts what is lost', async () => {
    const ledger = startLedger(() => Promise.reject(unavailable()))
    ledger.addSpeech(useOf())
    ledger.addSpeech(useOf())
    const closed = ledger.close()
    await pass(6_000)
    await closed
    expect(await counted()).toEqual({ written: 0, dropped: 2 })
  })
})
