import type { Config } from '#config/schema.ts'
import { type CallQueue, createCallQueue } from '#inference/fair-queue/call-queue.ts'
import { createQueueReport } from '#inference/fair-queue/queue-report.ts'
import { createProbes } from '#inference/routing/probes.ts'
import { createRouter, type Router } from '#inference/routing/router.ts'
import type { OnAttemptEnded } from '#inference/routing/slot.ts'
import type { Transport } from '#inference/transport.ts'
import type { Adapters } from '#inference/upstreams/index.ts'
import { AppError } from '#lib/errors.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import type { Log } from '#telemetry/log.ts'
import type { MetricRegistry } from '#telemetry/metrics.ts'
import type { ConfiguredUpstream } from './catalogue.ts'
import { inFlightShare } from './in-flight-share.ts'
import { addRoutingMetrics, logHealth } from './routing-report.ts'

/** How often silent and ejected upstreams are looked after. */
const checkEveryMs = 250

/** The router of the configured upstreams, with its queue and a timer that checks them. */
export function startRouting({
  config,
  upstreams,
  adapters,
  transport,
  metrics,
  onAttemptEnded,
  log,
}: {
  config: Config
  upstreams: readonly ConfiguredUpstream[]
  adapters: Adapters
  transport: Transport
  metrics: MetricRegistry
  onAttemptEnded: OnAttemptEnded
  log: Pick<Log, 'info' | 'warn'>
}): {
  router: Router
  waitingCalls: CallQueue['waiting']
  /** Changes to the upstreams of another configuration. */
  reload(next: Config, upstreams: readonly ConfiguredUpstream[]): void
  close(): void
} {
  const stopped = new AbortController()
  const requestContext = () => createBackgroundContext(stopped.signal)
  const queueReport = createQueueReport(metrics)
  /** Shared with the queue; only a reload changes it. */
  const queueSettings = { ...config.queue }
  const queue = createCallQueue({
    settings: queueSettings,
    nowMs: () => performance.now(),
    onEnded: queueReport.waitEnded,
  })
  queueReport.watch(queue)
  const settingsOf = ({ health, limits, upstream, workers, workerIndex = 0 }: Config) => {
    const inFlightMax = new Map(upstream.map(({ name, maxInFlight }) => [name, maxInFlight]))
    const { probeMs } = health
    return {
      settings: health,
      maxInFlightOf: (name: string) =>
        inFlightShare(inFlightMax.get(name), { workers, workerIndex }),
      probes: createProbes({ adapters, transport, limits, probeMs, requestContext }),
    }
  }
  warnOfFewSlots(config, log)
  const router = createRouter({
    ...settingsOf(config),
    onHealthChange: logHealth(log),
    onAttemptEnded,
    queue,
  })
  for (const { upstream } of upstreams) router.upstreamState(upstream)
  addRoutingMetrics(metrics, router)
  const timer = setInterval(router.check, checkEveryMs)
  timer.unref()
  return {
    router,
    waitingCalls: queue.waiting,
    reload(next, nextUpstreams) {
      warnOfFewSlots(next, log)
      Object.assign(queueSettings, next.queue)
      const definitions = nextUpstreams.map(({ upstream }) => upstream)
      router.configure({ ...settingsOf(next), upstreams: definitions })
    },
    close() {
      clearInterval(timer)
      stopped.abort()
      queue.stop(new AppError('draining', 'The server is stopping.'))
    },
  }
}

/** Once per machine. */
function warnOfFewSlots({ upstream, workers, workerIndex = 0 }: Config, log: Pick<Log, 'warn'>) {
  for (const { name, maxInFlight = workers } of upstream) {
    if (workerIndex > 0 || maxInFlight >= workers) continue
    log.warn('max_in_flight is less than the number of workers, each gets one', {
      upstream: name,
      max_in_flight: maxInFlight,
      workers,
    })
  }
}
