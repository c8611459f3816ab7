import { type CallerContext, type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { instantExample } from '#api/shapes.ts'
import type { Router } from '#inference/routing/router.ts'
import type { UpstreamState } from '#inference/routing/state.ts'
import { AppError } from '#lib/errors.ts'
import { percentDecoded } from '#lib/url.ts'
import type { Catalogue } from './catalogue.ts'
import type { Drains } from './drains.ts'
import {
  renderUpstream,
  type UpstreamRecord,
  upstreamList,
  upstreamRecord,
} from './upstream-record.ts'

const common = { permission: 'can_manage_models', tag: 'Upstreams' } as const

export type UpstreamEndpointDeps = {
  router: Router
  catalogue: Catalogue
  drains: Drains
  now: () => Date
}

/** What the worker that responds knows about its upstreams, and taking them out of service. */
export function upstreamEndpoints({
  router,
  catalogue,
  drains,
  now,
}: UpstreamEndpointDeps): Endpoint[] {
  const render = (upstream: UpstreamState): UpstreamRecord =>
    renderUpstream(upstream, drains.of(upstream.upstream.name), {
      nowMs: router.nowMs(),
      now: now(),
    })
  const require = (encoded: string): UpstreamState => {
    const name = percentDecoded(encoded)
    for (const upstream of router.upstreams()) if (upstream.upstream.name === name) return upstream
    throw new AppError('not_found', `There is no upstream "${name}".`, { param: 'name' })
  }
  const changed = async (
    change: (context: CallerContext, name: string) => Promise<void>,
    name: string,
    context: CallerContext,
  ) => {
    const upstream = require(name)
    await change(context, upstream.upstream.name)
    return render(upstream)
  }
  const params = { name: 'The name of the upstream.' }
  const errors = { not_found: 'There is no upstream "gpu-9".' }

  return [
    endpoint({
      method: 'GET',
      path: '/v1/upstreams',
      ...common,
      summary: 'List the upstreams',
      description: `State, load and latency of each upstream and its models. Every worker learns by itself,
so this is what the worker that responds knows; the metrics of all workers have the same numbers.`,
      responses: {
        200: {
          description: 'The upstreams, in the order of the configuration.',
          content: json(upstreamList, { object: 'list', worker: '4711', data: [example] }),
        },
      },
      handle() {
        // Also models without requests so far.
        for (const target of catalogue.targets()) router.stateOf(target)
        const data = [...router.upstreams()].map(render)
        return { object: 'list', worker: String(process.pid), data }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/v1/upstreams/:name/drain',
      ...common,
      summary: 'Take an upstream out of service',
      description: `It gets no further requests from any worker within a second, until it is put back into
service; requests in progress end normally. A model whose upstreams are all out of service answers
with 503.`,
      params,
      responses: {
        200: {
          description: 'The upstream.',
          content: json(upstreamRecord, { ...example, ...drained }),
        },
      },
      errors,
      handle: ({ params: { name }, context }) => changed(drains.drain, name, context),
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/upstreams/:name/drain',
      ...common,
      summary: 'Put an upstream back into service',
      params,
      responses: { 200: { description: 'The upstream.', content: json(upstreamRecord, example) } },
      errors,
      handle: ({ params: { name }, context }) => changed(drains.resume, name, context),
    }),
  ]
}

const healthy = {
  state: 'available',
  consecutive_failures: 0,
  ejections: 0,
  ejected_until: null,
} as const
const example = {
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
} as const
const drained = {
  state: 'draining',
  drained_at: instantExample,
  drained_by: '0198c5e4-2f6b-7c3a-9d41-5a7e8b90c1d2',
} as const
