import { AppError } from '#lib/errors.ts'
import { createSingleFlight } from '#lib/single-flight.ts'
import { orAfter } from '#lib/time-limit.ts'
import { collectMsMax } from './fleet-metrics.ts'
import { totalsOf } from './metric-snapshot.ts'
import type { MetricRegistry } from './metrics.ts'
import type { CollectScope, MetricsReport, MetricsRequest } from './metrics-messages.ts'
import { type MetricsFormat, renderMetrics } from './metrics-text.ts'

/** Beyond the time that the supervisor gives the other workers. */
const replyMsMax = 2 * collectMsMax + 1_000

/** Renders the metrics of this machine. */
export type Scrape = (format: MetricsFormat) => Promise<string>

/** Without a supervisor: those of this process. */
export function scrapeProcess(registry: MetricRegistry): Scrape {
  return async (format) => renderMetrics(await registry.snapshotWithShared(), format)
}

/** The channel to the supervisor; its messages include those of others. */
export type SupervisorChannel = {
  send(report: MetricsReport): void
  onMessage(listen: (message: MetricsRequest | { readonly type: 'other' }) => void): void
}

/**
 * The worker's end: reports to the supervisor when asked, and asks it for the metrics of all workers.
 * `report` sends the last totals before the worker ends.
 */
export function connectMetrics(
  registry: MetricRegistry,
  { send, onMessage }: SupervisorChannel,
): { readonly scrape: Scrape; readonly report: () => void } {
  const singleFlight = createSingleFlight<string>()
  /** By format: the latest request, until its reply arrives, which may be after its deadline. */
  const unanswered = new Map<MetricsFormat, { id: number; resolve: (text: string) => void }>()
  let scrapes = 0

  onMessage((message) => {
    if (message.type === 'collect-metrics') void report(message.scope)
    if (message.type !== 'scraped-metrics') return
    for (const [format, { id, resolve }] of unanswered) {
      if (id !== message.id) continue
      unanswered.delete(format)
      resolve(message.text)
    }
  })

  async function report(scope: CollectScope): Promise<void> {
    if (scope === 'shared') {
      send({ type: 'metrics', metrics: await registry.snapshotWithShared() })
      return
    }
    const metrics = registry.snapshot()
    send({ type: 'metrics', metrics: scope === 'all' ? metrics : totalsOf(metrics) })
  }

  async function ask(format: MetricsFormat): Promise<string> {
    // A supervisor that does not read must not fill the channel.
    if (unanswered.has(format)) throw noReply()
    const metrics = await registry.snapshotWithShared()
    const id = ++scrapes
    const reply = new Promise<string>((resolve) => unanswered.set(format, { id, resolve }))
    send({ type: 'scrape-metrics', id, format, metrics })
    const text = await orAfter(reply, replyMsMax, null)
    // Metrics of one worker would look like a restart of the counters.
    if (text === null) throw noReply()
    return text
  }

  return {
    scrape: (format) => singleFlight(format, () => ask(format)),
    report: () => void report('totals'),
  }
}

function noReply(): AppError {
  return new AppError('service_unavailable', 'The supervisor does not respond; retry.', {
    retryAfterS: 1,
  })
}
