import { type Static, Type } from '@sinclair/typebox'
import { instantExample, nullable } from '#api/shapes.ts'
import {
  stateOfModel,
  stateOfUpstream,
  upstreamStates,
  usualMsOf,
} from '#inference/routing/describe.ts'
import type { Health } from '#inference/routing/health.ts'
import type { TargetState, UpstreamState } from '#inference/routing/state.ts'
import type { Drain } from './drain-store.ts'

const count = (description: string) => Type.Integer({ description, minimum: 0 })
const instant = Type.String({ format: 'date-time' })

const state = Type.Union(
  upstreamStates.map((name) => Type.Literal(name)),
  {
    description:
      '`available`; `recovering`: its share of requests grows after an ejection; `suspect`: silent, and being checked; `half_open`: the next request shows whether it works again; `ejected`: gets no requests while a model has other upstreams; `draining`: taken out of service by an administrator.',
  },
)
const healthFields = {
  state,
  consecutive_failures: count('Since the last success.'),
  ejections: count('Number of ejections.'),
  ejected_until: nullable(instant, 'When it is tried again, at the earliest.'),
}

const upstreamModelRecord = Type.Object({
  model: Type.String({ description: 'The name at the upstream.' }),
  ...healthFields,
  first_event_ms: nullable(
    Type.Integer(),
    'Usual time to the first output of a stream; null before the first one.',
  ),
  response_ms: nullable(
    Type.Integer(),
    'Usual time to a whole response that is not streamed; null before the first one.',
  ),
})

export const upstreamRecord = Type.Object(
  {
    object: Type.Literal('upstream'),
    name: Type.String(),
    api: Type.String({ description: 'Its protocol.' }),
    ...healthFields,
    in_flight: count('Requests in progress.'),
    max_in_flight: nullable(Type.Integer(), 'The limit of this worker; null: none.'),
    queued: count('Requests that wait for its capacity.'),
    requests: count('Requests since the worker started, with retries.'),
    failures: count('Of these, failures of the upstream.'),
    last_failure: nullable(
      Type.Object({ kind: Type.String({ description: 'An error code.' }), at: instant }),
      'The last failure.',
    ),
    drained_at: nullable(instant, 'When it was taken out of service.'),
    drained_by: nullable(Type.String({ format: 'uuid' }), 'The id of the administrator.'),
    models: Type.Array(upstreamModelRecord, { description: 'Its models, by name.' }),
  },
  { $id: 'Upstream' },
)
export type UpstreamRecord = Static<typeof upstreamRecord>

export const upstreamList = Type.Object(
  {
    object: Type.Literal('list'),
    worker: Type.String({ description: 'The worker that responds, as in its metrics and log.' }),
    data: Type.Array(upstreamRecord),
  },
  { $id: 'UpstreamList' },
)

/** The monotonic time of the router, and the date to which it belongs. */
type Times = { readonly nowMs: number; readonly now: Date }

export function renderUpstream(
  upstream: UpstreamState,
  drain: Drain | undefined,
  times: Times,
): UpstreamRecord {
  const { lastFailure, maxInFlight } = upstream
  return {
    object: 'upstream',
    name: upstream.upstream.name,
    api: upstream.upstream.kind,
    state: stateOfUpstream(upstream, times.nowMs),
    ...renderHealth(upstream.health, times),
    in_flight: upstream.inFlight,
    max_in_flight: Number.isFinite(maxInFlight) ? maxInFlight : null,
    queued: upstream.queued,
    requests: upstream.requests,
    failures: upstream.failures,
    last_failure:
      lastFailure === null ? null : { kind: lastFailure.kind, at: dateOf(lastFailure.atMs, times) },
    drained_at: drain?.drainedAt.toISOString() ?? null,
    drained_by: drain?.drainedBy ?? null,
    models: [...upstream.models]
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .map(([model, target]) => renderModel(model, target, times)),
  }
}

function renderModel(model: string, target: TargetState, times: Times) {
  return {
    model,
    state: stateOfModel(target, times.nowMs),
    ...renderHealth(target.health, times),
    first_event_ms: rounded(usualMsOf(target.firstEvent)),
    response_ms: rounded(usualMsOf(target.whole)),
  }
}

function renderHealth(
  { failures, ejectionsTotal, isEjected, ejectedUntilMs }: Health,
  times: Times,
) {
  return {
    consecutive_failures: failures,
    ejections: ejectionsTotal,
    ejected_until: isEjected ? dateOf(ejectedUntilMs, times) : null,
  }
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}

function dateOf(atMs: number, { nowMs, now }: Times): string {
  return new Date(now.getTime() + atMs - nowMs).toISOString()
}

const healthy = {
  state: 'available',
  consecutive_failures: 0,
  ejections: 0,
  ejected_until: null,
} as const
export const upstreamExample: UpstreamRecord = {
  object: 'upstream',
  name: 'gpu-1',
  api: 'chat',
  ...healthy,
  in_flight: 3,
  max_in_flight: null,
  queued: 0,
  requests: 5_120,
  failures: 4,
  last_failure: { kind: 'upstream_overloaded', at: instantExample },
  drained_at: null,
  drained_by: null,
  models: [{ model: 'llama-3.3-70b', ...healthy, first_event_ms: 240, response_ms: 1_850 }],
}
