import { orAfter } from '#lib/time-limit.ts'
import { defineMetrics } from './metric-definition.ts'
import { type MetricSnapshot, mergeSnapshots, totalsOf } from './metric-snapshot.ts'
import type { MetricRegistry } from './metrics.ts'
import type { MetricsReport, MetricsRequest } from './metrics-messages.ts'
import { renderMetrics } from './metrics-text.ts'
import { seriesMax } from './process-metrics.ts'

/** How long a scrape waits for the workers; the latest snapshot stands for one that is late. */
export const collectMsMax = 2_000
/** How often the supervisor reads totals: what a killed worker loses of them. */
const pollMs = 2_000
const millisPerSecond = 1_000

export const fleetMetrics = defineMetrics({
  running: {
    type: 'gauge',
    name: 'sluice_workers_running',
    help: 'Workers that have started to listen.',
    across: 'same',
  },
  configured: {
    type: 'gauge',
    name: 'sluice_workers_configured',
    help: 'Workers that the configuration asks for.',
    across: 'same',
  },
  unresponsive: {
    type: 'gauge',
    name: 'sluice_workers_unresponsive',
    help: `Workers that did not report within ${collectMsMax / millisPerSecond} s to this scrape; it contains their latest snapshots.`,
    across: 'same',
  },
  snapshotAge: {
    type: 'gauge',
    name: 'sluice_metrics_snapshot_age_seconds',
    help: 'Age of the oldest snapshot of a worker in this scrape.',
    across: 'same',
  },
  restarts: {
    type: 'counter',
    name: 'sluice_worker_restarts_total',
    help: 'Workers that ended unexpectedly and were started again.',
  },
})

/** The metrics of one worker process, as the supervisor knows them. */
export type WorkerMetrics = {
  received(report: MetricsReport): void
  /** Keeps the totals of the worker, which must not fall with its end. */
  ended(): void
}

type Member = {
  readonly send: (request: MetricsRequest) => void
  readonly latest: Map<string, MetricSnapshot>
  reportedAtMs: number
  pending: { readonly askedAtMs: number; readonly reply: PromiseWithResolvers<boolean> } | null
}

export type FleetMetrics = ReturnType<typeof createFleetMetrics>

/**
 * Adds up the metrics of all workers of a machine. Each worker has at most one unanswered request, so a
 * stopped one costs no memory, and only the first scrape after it stopped waits for it.
 */
export function createFleetMetrics(options: {
  /** Of the supervisor itself. */
  registry: MetricRegistry
  workersConfigured: number
  nowMs: () => number
}) {
  const { registry, workersConfigured, nowMs } = options
  const members = new Set<Member>()
  /** Ended, and not yet in `base`: their last messages may still arrive. */
  let ended: Member[] = []
  let base: readonly MetricSnapshot[] = []
  let unresponsive = 0
  const restarts = registry.counter(fleetMetrics.restarts)
  registry.gauge(fleetMetrics.running, () => members.size)
  registry.gauge(fleetMetrics.configured, () => workersConfigured)
  registry.gauge(fleetMetrics.unresponsive, () => unresponsive)
  registry.gauge(fleetMetrics.snapshotAge, () => {
    const ages = [...members].map(({ reportedAtMs }) => nowMs() - reportedAtMs)
    return Math.max(0, ...ages) / millisPerSecond
  })

  function request(member: Member, scope: 'all' | 'totals'): void {
    member.pending = { askedAtMs: nowMs(), reply: Promise.withResolvers() }
    try {
      member.send({ type: 'collect-metrics', scope })
    } catch {
      // The channel of a worker that has just ended is closed.
      settle(member, false)
    }
  }

  function settle(member: Member, hasReported: boolean): void {
    member.pending?.reply.resolve(hasReported)
    member.pending = null
  }

  /** Resolves to whether the worker reported in time. */
  async function collect(member: Member): Promise<boolean> {
    const { pending } = member
    if (pending !== null && nowMs() - pending.askedAtMs >= collectMsMax) return false
    // The reply to a poll has totals only.
    if (pending !== null && !(await inTime(pending.reply.promise))) return false
    if (member.pending === null) request(member, 'all')
    return inTime(member.pending?.reply.promise)
  }

  function store(member: Member, metrics: readonly MetricSnapshot[]): void {
    for (const snapshot of metrics) member.latest.set(snapshot.definition.name, snapshot)
    member.reportedAtMs = nowMs()
  }

  async function respond(
    member: Member,
    { id, format }: MetricsReport & { readonly type: 'scrape-metrics' },
  ): Promise<void> {
    const others = [...members].filter((one) => one !== member)
    const reported = await Promise.all(others.map(collect))
    unresponsive = reported.filter((hasReported) => !hasReported).length
    const text = renderMetrics(merged(), format)
    try {
      member.send({ type: 'scraped-metrics', id, text })
    } catch {
      // The worker has ended meanwhile.
    }
  }

  function merged(): readonly MetricSnapshot[] {
    const live = [...members].map(({ latest }) => [...latest.values()])
    return mergeSnapshots([registry.snapshot(), ...live, ...endedTotals()], seriesMax)
  }

  function endedTotals(): (readonly MetricSnapshot[])[] {
    return [...ended.map(({ latest }) => totalsOf([...latest.values()])), base]
  }

  function poll(): void {
    base = mergeSnapshots(endedTotals(), seriesMax)
    ended = []
    for (const member of members) if (member.pending === null) request(member, 'totals')
  }
  const timer = setInterval(poll, pollMs)
  timer.unref()

  return {
    /** Registers a worker that has started to listen. */
    add(send: Member['send']): WorkerMetrics {
      const member: Member = { send, latest: new Map(), reportedAtMs: nowMs(), pending: null }
      members.add(member)
      return {
        received(report) {
          store(member, report.metrics)
          if (report.type === 'scrape-metrics') void respond(member, report)
          else settle(member, true)
        },
        ended() {
          members.delete(member)
          ended.push(member)
          settle(member, false)
        },
      }
    },
    restarted: () => restarts.add(1),
    close: () => clearInterval(timer),
  }
}

async function inTime(reply: Promise<boolean> | undefined): Promise<boolean> {
  return reply === undefined ? false : orAfter(reply, collectMsMax, false)
}
