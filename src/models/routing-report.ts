import { stateOfUpstream, usualMsOf } from '#inference/routing/describe.ts'
import type { Router } from '#inference/routing/router.ts'
import type { OnHealthChange, TargetState, UpstreamState } from '#inference/routing/state.ts'
import type { Log } from '#telemetry/log.ts'
import type { MetricRegistry, Sample } from '#telemetry/metrics.ts'
import { routingMetrics } from './metrics.ts'

const millisPerSecond = 1_000

/** Logs ejections and recoveries. */
export function logHealth(log: Pick<Log, 'info' | 'warn'>): OnHealthChange {
  return ({ isEjected, isSilent, failures }, { name }, model) => {
    const fields = { upstream: name, ...(model === null ? {} : { model }) }
    if (!isEjected) log.info('upstream recovered', fields)
    else log.warn('upstream ejected', { ...fields, silent: isSilent, failures })
  }
}

/** The metrics of the router. Their labels are bounded by the configuration and the registry. */
export function addRoutingMetrics(metrics: MetricRegistry, router: Router): void {
  const perUpstream = (read: (upstream: UpstreamState) => number) => () =>
    [...router.upstreams()].map((each): Sample => [read(each), each.upstream.name])
  const perTarget = (read: (target: TargetState) => number | null) => () =>
    [...router.upstreams()].flatMap(({ upstream, models }) =>
      [...models].flatMap(([model, state]): Sample[] => {
        const value = read(state)
        return value === null ? [] : [[value, upstream.name, model]]
      }),
    )
  metrics.gauge(
    routingMetrics.inFlight,
    perUpstream(({ inFlight }) => inFlight),
  )
  metrics.gauge(routingMetrics.state, () =>
    [...router.upstreams()].map(
      (each): Sample => [1, each.upstream.name, stateOfUpstream(each, router.nowMs())],
    ),
  )
  metrics.observeCounter(
    routingMetrics.attempts,
    perUpstream(({ requests }) => requests),
  )
  metrics.observeCounter(
    routingMetrics.failures,
    perUpstream(({ failures }) => failures),
  )
  metrics.observeCounter(
    routingMetrics.ejections,
    perUpstream(({ health }) => health.ejectionsTotal),
  )
  metrics.observeCounter(
    routingMetrics.retriesRefused,
    perUpstream(({ retriesRefused }) => retriesRefused),
  )
  metrics.observeCounter(
    routingMetrics.modelEjections,
    perTarget(({ health }) => health.ejectionsTotal),
  )
  metrics.gauge(
    routingMetrics.firstEvent,
    perTarget(({ firstEvent }) => {
      const usualMs = usualMsOf(firstEvent)
      return usualMs === null ? null : usualMs / millisPerSecond
    }),
  )
}
