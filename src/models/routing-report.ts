import { stateOfUpstream, usualMsOf } from '#inference/routing/describe.ts'
import type { Router } from '#inference/routing/router.ts'
import type { OnHealthChange, TargetState, UpstreamState } from '#inference/routing/state.ts'
import type { Log } from '#telemetry/log.ts'
import type { MetricRegistry, Sample } from '#telemetry/metrics.ts'

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
  const labels = ['upstream']
  metrics.gauge(
    { name: 'sluice_upstream_in_flight', help: 'Requests in progress at an upstream.', labels },
    perUpstream(({ inFlight }) => inFlight),
  )
  metrics.gauge(
    {
      name: 'sluice_upstream_state',
      help: 'The state of an upstream: 1 for its present one.',
      labels: ['upstream', 'state'],
    },
    () =>
      [...router.upstreams()].map(
        (each): Sample => [1, each.upstream.name, stateOfUpstream(each, router.nowMs())],
      ),
  )
  metrics.gauge(
    {
      name: 'sluice_upstream_attempts_total',
      help: 'Attempts at an upstream, with retries.',
      kind: 'counter',
      labels,
    },
    perUpstream(({ requests }) => requests),
  )
  metrics.gauge(
    {
      name: 'sluice_upstream_failures_total',
      help: 'Attempts that failed because of the upstream.',
      kind: 'counter',
      labels,
    },
    perUpstream(({ failures }) => failures),
  )
  metrics.gauge(
    {
      name: 'sluice_upstream_ejections_total',
      help: 'Ejections of an upstream.',
      kind: 'counter',
      labels,
    },
    perUpstream(({ health }) => health.ejectionsTotal),
  )
  metrics.gauge(
    {
      name: 'sluice_upstream_retries_refused_total',
      help: 'Retries that the budget of an upstream did not allow.',
      kind: 'counter',
      labels,
    },
    perUpstream(({ retriesRefused }) => retriesRefused),
  )
  metrics.gauge(
    {
      name: 'sluice_model_ejections_total',
      help: 'Ejections of a model of an upstream.',
      kind: 'counter',
      labels: ['upstream', 'model'],
    },
    perTarget(({ health }) => health.ejectionsTotal),
  )
  metrics.gauge(
    {
      name: 'sluice_target_first_event_seconds',
      help: 'Usual time to the first output of a stream, by which requests are balanced.',
      labels: ['upstream', 'model'],
    },
    perTarget(({ firstEvent }) => {
      const usualMs = usualMsOf(firstEvent)
      return usualMs === null ? null : usualMs / millisPerSecond
    }),
  )
}
