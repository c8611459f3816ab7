import type { MetricRegistry } from '#telemetry/metrics.ts'
import type { CallQueue, EndedWait } from './call-queue.ts'

const waitBoundsS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]
const millisPerSecond = 1_000

/** The metrics of calls that had to wait. */
export function createQueueReport(metrics: MetricRegistry) {
  const labels = ['model', 'priority']
  const ended = metrics.counter({
    name: 'sluice_queue_calls_total',
    help: 'Calls that had to wait for capacity of an upstream, or were refused.',
    labels: [...labels, 'outcome'],
  })
  const waits = metrics.histogram({
    name: 'sluice_queue_wait_seconds',
    help: 'Wait of calls that got a slot.',
    labels,
    bounds: waitBoundsS,
  })
  return {
    waitEnded({ model, priority, outcome, waitedMs }: EndedWait) {
      ended.add(1, model, priority, outcome)
      if (outcome === 'granted') waits.observe(waitedMs / millisPerSecond, model, priority)
    },
    watch(queue: Pick<CallQueue, 'waiting'>) {
      metrics.gauge(
        { name: 'sluice_queue_waiting', help: 'Calls that wait for capacity.', labels },
        queue.waiting,
      )
    },
  }
}
