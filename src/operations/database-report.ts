import type { Database } from '#db/client.ts'
import { queryCounts } from '#db/query-runner.ts'
import { createSingleFlight } from '#lib/single-flight.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { MetricRegistry } from '#telemetry/metrics.ts'
import { databaseMetrics } from './metrics.ts'

/** Below `sharedGaugeMsMax`, so that a database that hangs is reported as down. */
const pingMsMax = 1_000
const millisPerSecond = 1_000

export function addDatabaseMetrics(
  metrics: MetricRegistry,
  database: Pick<Database, 'ping'>,
): void {
  const singleFlight = createSingleFlight<number | null>()
  /** In seconds; null: it does not answer. */
  const ping = () =>
    singleFlight('', () => {
      const startedAtMs = performance.now()
      const answered = database.ping().then(() => performance.now() - startedAtMs)
      return orAfter(answered, pingMsMax, null).catch(() => null)
    })
  metrics.sharedGauge(databaseMetrics.up, async () => ((await ping()) === null ? 0 : 1))
  metrics.sharedGauge(databaseMetrics.ping, async () => {
    const ms = await ping()
    return ms === null ? [] : ms / millisPerSecond
  })
  metrics.gauge(databaseMetrics.pending, () => queryCounts().pending)
  metrics.observeCounter(databaseMetrics.unavailable, () => queryCounts().unavailable)
}
