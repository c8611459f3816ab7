import { type CallerContext, type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { instantExample } from '#api/shapes.ts'
import type { UpstreamState } from '#inference/routing/state.ts'
import { AppError } from '#lib/errors.ts'
import { percentDecoded } from '#lib/url.ts'
import { upstreamExample as example, upstreamList, upstreamRecord } from './upstream-record.ts'
import { createUpstreamReport, type UpstreamReportDeps } from './upstream-report.ts'

const common = { permission: 'can_manage_models', tag: 'Upstreams' } as const

export type UpstreamEndpointDeps = UpstreamReportDeps

/** What the worker that responds knows about its upstreams, and taking them out of service. */
export function upstreamEndpoints(deps: UpstreamEndpointDeps): Endpoint[] {
  const { router, drains } = deps
  const report = createUpstreamReport(deps)
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
    return report.of(upstream)
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
so this is what the worker that responds knows; \`GET /v1/traffic\` has that of all workers.`,
      responses: {
        200: {
          description: 'The upstreams, in the order of the configuration.',
          content: json(upstreamList, { object: 'list', worker: '4711', data: [example] }),
        },
      },
      handle() {
        return { object: 'list', worker: String(process.pid), data: report.all() }
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

const drained = {
  state: 'draining',
  drained_at: instantExample,
  drained_by: '0198c5e4-2f6b-7c3a-9d41-5a7e8b90c1d2',
} as const
