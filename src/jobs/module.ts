import { createSingleFlight } from '#lib/single-flight.ts'
import { orAfter } from '#lib/time-limit.ts'
import { type Foundation, module } from '#module.ts'
import type { MetricRegistry, Sample } from '#telemetry/metrics.ts'
import { createJobs, type Jobs, type QueueCount } from './jobs.ts'

/** Background work that survives its process. */
export const jobsModule = module({
  name: 'jobs',
  async start({ database, log, metrics }: Foundation) {
    const jobs = await createJobs({ database, log })
    addDatabaseGauges(metrics, jobs)
    return { services: { jobs }, close: () => jobs.close() }
  },
})

/** How long a scrape waits for an unreachable database. */
const databaseMs = 2_000

/** One query answers both gauges. */
function addDatabaseGauges(metrics: MetricRegistry, { count }: Pick<Jobs, 'count'>): void {
  const singleFlight = createSingleFlight<readonly QueueCount[] | null>()
  const counted = () => singleFlight('', () => orAfter(count(), databaseMs, null).catch(() => null))
  metrics.gauge(
    { name: 'sluice_database_up', help: 'Whether the database answers.' },
    async (): Promise<readonly Sample[]> => [[(await counted()) === null ? 0 : 1]],
  )
  metrics.gauge(
    { name: 'sluice_jobs', help: 'Background jobs of all workers.', labels: ['queue', 'state'] },
    async () =>
      ((await counted()) ?? []).flatMap(({ queue, waiting, running, failed }): Sample[] => [
        [waiting, queue, 'waiting'],
        [running, queue, 'running'],
        [failed, queue, 'failed'],
      ]),
  )
}
