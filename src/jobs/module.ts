import { createSingleFlight } from '#lib/single-flight.ts'
import { type Foundation, module } from '#module.ts'
import type { MetricRegistry, Sample } from '#telemetry/metrics.ts'
import { createJobs, type Jobs, type QueueCount } from './jobs.ts'
import { jobMetrics } from './metrics.ts'

const millisPerSecond = 1_000

/** Background work that survives its process. */
export const jobsModule = module({
  name: 'jobs',
  metrics: [jobMetrics],
  async start({ database, log, metrics, tracer }: Foundation) {
    const duration = metrics.histogram(jobMetrics.duration)
    const jobs = await createJobs({
      database,
      log,
      tracer,
      onAttempted: (queue, outcome, ms) => duration.observe(ms / millisPerSecond, queue, outcome),
    })
    addQueueGauges(metrics, jobs)
    return { services: { jobs }, close: () => jobs.close() }
  },
})

/** One query answers both gauges. */
function addQueueGauges(metrics: MetricRegistry, { count }: Pick<Jobs, 'count'>): void {
  const singleFlight = createSingleFlight<readonly QueueCount[]>()
  const counted = () => singleFlight('', count)
  metrics.sharedGauge(jobMetrics.jobs, async () =>
    (await counted()).flatMap(({ queue, waiting, running, failed }): Sample[] => [
      [waiting, queue, 'waiting'],
      [running, queue, 'running'],
      [failed, queue, 'failed'],
    ]),
  )
  metrics.sharedGauge(jobMetrics.oldest, async () =>
    (await counted()).map(({ queue, oldestDueS }): Sample => [oldestDueS, queue]),
  )
}
