import type { Database } from '#db/client.ts'
import { queryCounts } from '#db/query-runner.ts'
import { createSingleFlight } from '#lib/single-flight.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { MetricRegistry } from '#telemetry/metrics.ts'
import { databaseMetrics } from './metrics.ts'

/** Below `sharedGaugeMsMax`, so that a database that hangs is reported as down. */
const pingMsMax = 1_000
const millisPerSecond = 1_000

export type DatabaseHealth = ReturnType<typeof watchDatabase>

export function watchDatabase(database: Pick<Database, 'ping' | 'kind'>) {
  const singleFlight = createSingleFlight<number | null>()
  return {
    kind: database.kind,
    /** The round trip of a ping in milliseconds; null: no response. Concurrent calls share one. */
    pingMs: () =>
      singleFlight('', () => {
        const startedAtMs = performance.now()
        const responded = database.ping().then(() => performance.now() - startedAtMs)
        return orAfter(responded, pingMsMax, null).catch(() => null)
      }),
  }
}

export function addDatabaseMetrics(metrics: MetricRegistry, { pingMs }: DatabaseHealth): void {
  metrics.sharedGauge(databaseMetrics.up, async () => ((await pingMs()) === null ? 0 : 1))
  metrics.sharedGauge(databaseMetrics.ping, async () => {
    const ms = await pingMs()
    return ms === null ? [] : ms / millisPerSecond
  })
  metrics.gauge(databaseMetrics.pending, () => queryCounts().pending)
  metrics.observeCounter(databaseMetrics.unavailable, () => queryCounts().unavailable)
}
