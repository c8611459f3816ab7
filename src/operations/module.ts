import { createHttpMetrics, httpMetrics } from '#http/metrics.ts'
import { createOpenSockets } from '#http/open-sockets.ts'
import { type Foundation, module } from '#module.ts'
import { databaseEndpoints } from './database-endpoints.ts'
import { addDatabaseMetrics, type DatabaseHealth, watchDatabase } from './database-report.ts'
import { operationsEndpoints } from './endpoints.ts'
import { databaseMetrics, operationsMetrics } from './metrics.ts'

/** Probes, metrics, and the open WebSockets of this process. */
export const operationsModule = module({
  name: 'operations',
  tags: { Operations: 'Health checks, metrics and documentation.' },
  metrics: [httpMetrics, operationsMetrics, databaseMetrics],
  start({ metrics, draining, database }: Foundation) {
    const databaseHealth = watchDatabase(database)
    addDatabaseMetrics(metrics, databaseHealth)
    const sockets = createOpenSockets()
    metrics.gauge(operationsMetrics.socketsOpen, sockets.count)
    metrics.gauge(operationsMetrics.socketsBusy, sockets.busy)
    metrics.gauge(operationsMetrics.draining, () => Number(draining()))
    return { services: { sockets, databaseHealth, httpMetrics: createHttpMetrics(metrics) } }
  },
  endpoints: (services: Foundation & { databaseHealth: DatabaseHealth }) => [
    ...operationsEndpoints(services),
    ...databaseEndpoints(services),
  ],
})
