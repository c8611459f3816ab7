import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { addDatabaseMetrics, watchDatabase } from '#operations/database-report.ts'
import { createMetricRegistry, sharedGaugeMsMax } from '#telemetry/metrics.ts'
import { renderMetrics } from '#telemetry/metrics-text.ts'
import { readMetrics } from '#test/support/metrics-text.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const never = () => new Promise<never>(() => {})

/** What a scrape reads when this time has passed. */
async function readAfter(registry: ReturnType<typeof createMetricRegistry>, ms: number) {
  const snapshot = registry.snapshotWithShared()
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  jest.advanceTimersByTime(ms)
  return readMetrics(renderMetrics(await snapshot, 'prometheus'))
}

test('a shared gauge that hangs is omitted after its deadline', async () => {
  const registry = createMetricRegistry({ seriesMax: 10 })
  const gauge = { type: 'gauge', help: 'Rows.', across: 'same' } as const
  registry.sharedGauge({ ...gauge, name: 'hangs' }, never)
  registry.sharedGauge({ ...gauge, name: 'answers' }, async () => 3)
  const metrics = await readAfter(registry, sharedGaugeMsMax)
  expect([metrics.get('hangs'), metrics.get('answers')]).toEqual([undefined, 3])
})

test('a database that hangs is down', async () => {
  const registry = createMetricRegistry({ seriesMax: 10 })
  addDatabaseMetrics(registry, watchDatabase({ kind: 'pglite', ping: never }))
  const metrics = await readAfter(registry, sharedGaugeMsMax)
  expect(metrics.get('sluice_database_up')).toBe(0)
  expect(metrics.has('sluice_database_ping_seconds')).toBe(false)
})

test('two metrics cannot have one name', () => {
  const registry = createMetricRegistry({ seriesMax: 10 })
  const definition = { type: 'counter', name: 'calls_total', help: 'All.' } as const
  registry.counter(definition)
  expect(() => registry.counter(definition)).toThrow('two metrics have the name calls_total')
})
