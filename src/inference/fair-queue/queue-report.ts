import { queueMetrics } from '#inference/metrics.ts'
import type { MetricRegistry } from '#telemetry/metrics.ts'
import type { CallQueue, EndedWait } from './call-queue.ts'

const millisPerSecond = 1_000

/** The metrics of calls that had to wait. */
export function createQueueReport(metrics: MetricRegistry) {
  const ended = metrics.counter(queueMetrics.ended)
  const waits = metrics.histogram(queueMetrics.waits)
  return {
    waitEnded({ model, priority, outcome, waitedMs }: EndedWait) {
      ended.add(1, model, priority, outcome)
      if (outcome === 'granted') waits.observe(waitedMs / millisPerSecond, model, priority)
    },
    watch(queue: Pick<CallQueue, 'waiting'>) {
      metrics.gauge(queueMetrics.waiting, queue.waiting)
    },
  }
}
