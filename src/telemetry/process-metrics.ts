import { createMetricRegistry, type MetricRegistry } from './metrics.ts'

const lagBoundsS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
const lagEveryMs = 250
/** Combinations of labels, such as models at upstreams with each outcome. */
const seriesMax = 2_000
const millisPerSecond = 1_000
const microsPerSecond = 1_000_000

/** The metrics of this process; every module adds its own. `close` stops measuring the event loop. */
export function createProcessMetrics({ worker }: { worker: string }) {
  const registry = createMetricRegistry({ seriesMax, labels: { worker } })
  addProcessGauges(registry)
  return { registry, close: observeLag(registry) }
}

function addProcessGauges(registry: MetricRegistry): void {
  registry.gauge(
    { name: 'process_resident_memory_bytes', help: 'Memory of the process.' },
    process.memoryUsage.rss,
  )
  registry.gauge(
    { name: 'process_cpu_seconds_total', help: 'Time of processors.', kind: 'counter' },
    () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / microsPerSecond
    },
  )
  registry.gauge(
    { name: 'process_uptime_seconds', help: 'How long the process runs.' },
    process.uptime,
  )
}

/** How much later than it should a timer fires. Returns what ends it. */
function observeLag(registry: MetricRegistry): () => void {
  const lag = registry.histogram({
    name: 'sluice_event_loop_lag_seconds',
    help: `How much too late a timer fires, looked at every ${lagEveryMs} ms.`,
    bounds: lagBoundsS,
  })
  let dueAt = performance.now() + lagEveryMs
  const timer = setInterval(() => {
    const at = performance.now()
    lag.observe(Math.max(0, at - dueAt) / millisPerSecond)
    dueAt = at + lagEveryMs
  }, lagEveryMs)
  timer.unref()
  return () => clearInterval(timer)
}
