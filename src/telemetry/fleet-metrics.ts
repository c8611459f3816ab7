import { createSingleFlight } from '#lib/single-flight.ts'
import { orAfter } from '#lib/time-limit.ts'
import { defineMetrics } from './metric-definition.ts'
import { type MetricSnapshot, mergeSnapshots, totalsOf } from './metric-snapshot.ts'
import type { MetricRegistry } from './metrics.ts'
import type { CollectScope, MetricsReport, MetricsRequest } from './metrics-messages.ts'
import { type MetricsFormat, renderMetrics } from './metrics-text.ts'
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

type Reply = readonly MetricSnapshot[] | null

type Member = {
  readonly send: (request: MetricsRequest) => void
  readonly latest: Map<string, MetricSnapshot>
  reportedAtMs: number
  pending: { readonly askedAtMs: number; readonly reply: PromiseWithResolvers<Reply> } | null
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
  const singleFlight = createSingleFlight<string>()
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

  function request(member: Member, scope: CollectScope): void {
    member.pending = { askedAtMs: nowMs(), reply: Promise.withResolvers() }
    try {
      member.send({ type: 'collect-metrics', scope })
    } catch {
      // The channel of a worker that has just ended is closed.
      settle(member, null)
    }
  }

  function settle(member: Member, reply: Reply): void {
    member.pending?.reply.resolve(reply)
    member.pending = null
  }

  function isResponsive({ pending }: Member): boolean {
    return pending === null || nowMs() - pending.askedAtMs < collectMsMax
  }

  /** Null if the worker does not report in time. */
  async function collect(member: Member, scope: CollectScope): Promise<Reply> {
    if (!isResponsive(member)) return null
    const { pending } = member
    // The reply to a poll has totals only.
    if (pending !== null && (await inTime(pending.reply.promise)) === null) return null
    if (member.pending === null) request(member, scope)
    return inTime(member.pending?.reply.promise)
  }

  function store(member: Member, metrics: readonly MetricSnapshot[]): void {
    for (const snapshot of metrics) {
      if (!isShared(snapshot)) member.latest.set(snapshot.definition.name, snapshot)
    }
    member.reportedAtMs = nowMs()
  }

  /** `responder` has just reported with shared gauges; null: the supervisor itself responds. */
  async function gather(
    responder: Member | null,
    given: readonly MetricSnapshot[],
  ): Promise<readonly MetricSnapshot[]> {
    const others = [...members].filter((one) => one !== responder)
    const sharer = responder === null ? others.find(isResponsive) : null
    const replies = await Promise.all(
      others.map((one) => collect(one, one === sharer ? 'shared' : 'all')),
    )
    unresponsive = replies.filter((reply) => reply === null).length
    const live = [...members].map(({ latest }) => [...latest.values()])
    const shared = [given, ...replies].flatMap((reply) => (reply ?? []).filter(isShared))
    return mergeSnapshots([registry.snapshot(), ...live, ...endedTotals(), shared], seriesMax)
  }

  async function respond(
    member: Member,
    { id, format, metrics }: MetricsReport & { readonly type: 'scrape-metrics' },
  ): Promise<void> {
    const text = renderMetrics(await gather(member, metrics), format)
    try {
      member.send({ type: 'scraped-metrics', id, text })
    } catch {
      // The worker has ended meanwhile.
    }
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
          else settle(member, report.metrics)
        },
        ended() {
          members.delete(member)
          ended.push(member)
          settle(member, null)
        },
      }
    },
    /** For a scrape that the supervisor responds to. */
    scrape: (format: MetricsFormat) =>
      singleFlight(format, async () => renderMetrics(await gather(null, []), format)),
    restarted: () => restarts.add(1),
    workersRunning: () => members.size,
    close: () => clearInterval(timer),
  }
}

async function inTime(reply: Promise<Reply> | undefined): Promise<Reply> {
  return reply === undefined ? null : orAfter(reply, collectMsMax, null)
}

/** Read anew by the worker that responds to a scrape; the values of others are older. */
function isShared({ definition }: MetricSnapshot): boolean {
  return definition.type === 'gauge' && definition.across === 'same'
}
