import { expect, test } from 'bun:test'
import { loadConfig } from '#config/load.ts'
import { startServices } from '#modules.ts'
import type { MetricsReport } from '#telemetry/metrics-messages.ts'
import { openTestDatabase } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { dataFolder } from '#test/support/temporary-folders.ts'

test('a worker that ends reports its totals to the supervisor', async () => {
  const reports: MetricsReport[] = []
  const database = await openTestDatabase()
  const config = loadConfig({
    JWT_SECRET: 'a-secret-for-tests-of-at-least-32-characters',
    SLUICE_DATA: dataFolder(),
  })
  const given = { log: quietLog, draining: () => true, database }
  const services = await startServices(config, given, {
    send: (report) => void reports.push(report),
    onMessage() {},
  })
  services.metrics.counter({ type: 'counter', name: 'ended_total', help: 'Of this test.' }).add(3)
  expect(reports).toEqual([])
  await services.close()
  const [report] = reports
  expect(reports).toHaveLength(1)
  const names = report?.metrics.map(({ definition }) => definition.name)
  expect(report?.metrics).toContainEqual(
    expect.objectContaining({ series: [{ labels: [], values: [3] }] }),
  )
  // Gauges say nothing about a process that has ended.
  expect(names).not.toContain('process_resident_memory_bytes')
})
