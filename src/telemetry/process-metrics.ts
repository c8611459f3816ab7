import { readdirSync, readFileSync, statSync } from 'node:fs'
import { defineMetrics } from './metric-definition.ts'
import type { MetricRegistry } from './metrics.ts'

/** Label sets of one metric, such as models at upstreams with each outcome. */
export const seriesMax = 2_000
const lagEveryMs = 250
const millisPerSecond = 1_000
const microsPerSecond = 1_000_000

export const processMetrics = defineMetrics({
  build: {
    type: 'gauge',
    name: 'sluice_build_info',
    help: 'Always 1; the labels are the versions of the program and of Bun.',
    across: 'max',
    labels: ['version', 'bun'],
  },
  memory: {
    type: 'gauge',
    name: 'process_resident_memory_bytes',
    help: 'Memory of the supervisor and its workers.',
    across: 'sum',
  },
  largest: {
    type: 'gauge',
    name: 'sluice_process_resident_memory_max_bytes',
    help: 'Memory of the largest process of the gateway.',
    across: 'max',
  },
  cpu: {
    type: 'counter',
    name: 'process_cpu_seconds_total',
    help: 'CPU time of the supervisor and its workers, also of those that ended.',
  },
  started: {
    type: 'gauge',
    name: 'process_start_time_seconds',
    help: 'Unix time at which the gateway started.',
    across: 'min',
  },
  uptime: {
    type: 'gauge',
    name: 'process_uptime_seconds',
    help: 'Time since the gateway started.',
    across: 'max',
  },
  descriptors: {
    type: 'gauge',
    name: 'process_open_fds',
    help: 'Open file descriptors of the supervisor and its workers.',
    across: 'sum',
  },
  descriptorsMax: {
    type: 'gauge',
    name: 'process_max_fds',
    help: 'Limit of open file descriptors, which each process has for itself.',
    across: 'min',
  },
  descriptorUse: {
    type: 'gauge',
    name: 'sluice_descriptors_used_ratio',
    help: 'Open file descriptors of the process that is closest to its limit, as a share of the limit.',
    across: 'max',
  },
})

export const eventLoopMetrics = defineMetrics({
  lag: {
    type: 'histogram',
    name: 'sluice_event_loop_lag_seconds',
    help: `Delay of a timer that fires every ${lagEveryMs} ms in each worker.`,
    bounds: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
})

/** Registers memory, CPU time and descriptors of this process. */
export function addProcessMetrics(registry: MetricRegistry, version: string): void {
  registry.gauge(processMetrics.build, () => [[1, version, Bun.version]])
  registry.gauge(processMetrics.memory, process.memoryUsage.rss)
  registry.gauge(processMetrics.largest, process.memoryUsage.rss)
  registry.observeCounter(processMetrics.cpu, () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / microsPerSecond
  })
  registry.gauge(processMetrics.started, () => performance.timeOrigin / millisPerSecond)
  registry.gauge(processMetrics.uptime, () => performance.now() / millisPerSecond)
  const limit = descriptorLimit()
  if (limit === null) return
  registry.gauge(processMetrics.descriptors, openDescriptors)
  registry.gauge(processMetrics.descriptorsMax, () => limit)
  registry.gauge(processMetrics.descriptorUse, () => openDescriptors() / limit)
}

/** Measures how late a timer fires. Returns what ends it. */
export function observeEventLoop(registry: MetricRegistry): () => void {
  const lag = registry.histogram(eventLoopMetrics.lag)
  let dueAt = performance.now() + lagEveryMs
  const timer = setInterval(() => {
    const at = performance.now()
    lag.observe(Math.max(0, at - dueAt) / millisPerSecond)
    dueAt = at + lagEveryMs
  }, lagEveryMs)
  timer.unref()
  return () => clearInterval(timer)
}

/** Null on systems without /proc. */
function descriptorLimit(): number | null {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    const soft = /^Max open files +(\d+)/m.exec(limits)?.[1]
    return soft === undefined ? null : Number(soft)
  } catch {
    return null
  }
}

/** Linux 6.2 and later tell the number as the size of the folder; a list of 20,000 takes milliseconds. */
function openDescriptors(): number {
  const { size } = statSync('/proc/self/fd')
  return size > 0 ? size : readdirSync('/proc/self/fd').length
}
