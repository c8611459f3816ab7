import type { Config } from '#config/schema.ts'
import { createCallQueue } from '#inference/fair-queue/call-queue.ts'
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
}): { router: Router; close(): void } {
  const { health, limits } = config
  const stopped = new AbortController()
  const requestContext = () => createBackgroundContext(stopped.signal)
  const queueReport = createQueueReport(metrics)
  const queue = createCallQueue({
    settings: config.queue,
    nowMs: () => performance.now(),
    onEnded: queueReport.waitEnded,
  })
  queueReport.watch(queue)
  const inFlightMax = new Map(config.upstream.map(({ name, maxInFlight }) => [name, maxInFlight]))
  warnOfFewSlots(config, log)
  const router = createRouter({
    settings: health,
    onHealthChange: logHealth(log),
    onAttemptEnded,
    queue,
    maxInFlightOf: (name) => inFlightShare(inFlightMax.get(name), config),
    probes: createProbes({ adapters, transport, limits, probeMs: health.probeMs, requestContext }),
  })
  for (const { upstream } of upstreams) router.upstreamState(upstream)
  addRoutingMetrics(metrics, router)
  const timer = setInterval(router.check, checkEveryMs)
  timer.unref()
  return {
    router,
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
