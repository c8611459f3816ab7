import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import type { Scrape } from '#telemetry/scrape.ts'
import { notLocal, requireMetricsAccess, wrongToken } from './metrics-access.ts'
import { metricsResponse, probeResponse } from './metrics-listener.ts'

export type OperationsEndpointsDeps = {
  config: { readonly metrics: Pick<Config['metrics'], 'token'> }
  scrapeMetrics: Scrape
  draining: () => boolean
}

/** Probes and metrics. */
export function operationsEndpoints({
  config,
  scrapeMetrics,
  draining,
}: OperationsEndpointsDeps): Endpoint[] {
  const { token } = config.metrics
  return [
    endpoint({
      method: 'GET',
      path: '/livez',
      permission: 'public',
      tag: 'Operations',
      summary: 'Tell whether the process runs',
      responses: { 200: ok },
      handle: () => ({ status: 'ok' }),
    }),

    endpoint({
      method: 'GET',
      path: '/readyz',
      permission: 'public',
      tag: 'Operations',
      summary: 'Tell whether the process accepts work',
      description:
        '503 as soon as the process was asked to stop. The database does not count: tokens and cached keys work without it.',
      responses: {
        200: ok,
        503: {
          description: 'The process is stopping; send requests to another process.',
          content: json(statusOf('draining'), { status: 'draining' }),
        },
      },
      handle: () => probeResponse(draining() ? 'draining' : 'ok'),
    }),

    endpoint({
      method: 'GET',
      path: '/metrics',
      permission: 'public',
      tag: 'Operations',
      summary: 'Read metrics',
      description: `Of all workers of this gateway together, in the Prometheus text format or, if \`Accept\` names it, as
OpenMetrics. Counters do not fall when a worker restarts. docs/metrics.md lists all metrics.

Without \`metrics.token\` in the configuration only clients on this machine are allowed; with it, clients that send
the token as \`Authorization: Bearer\`.`,
      responses: {
        200: {
          description: 'The metrics.',
          content: {
            'text/plain': { schema: Type.String(), example: metricsExample },
            'application/openmetrics-text': { schema: Type.String() },
          },
        },
      },
      errors: { invalid_token: wrongToken, permission_denied: notLocal },
      handle({ request, server }) {
        requireMetricsAccess(token, request, server?.requestIP(request)?.address)
        return metricsResponse(scrapeMetrics, request)
      },
    }),
  ]
}

function statusOf(status: string) {
  return Type.Object({ status: Type.Literal(status) })
}

const ok = { description: 'Yes.', content: json(statusOf('ok'), { status: 'ok' }) }
const metricsExample = [
  '# HELP sluice_generations_total Finished generations.',
  '# TYPE sluice_generations_total counter',
  'sluice_generations_total{upstream="local",model="small",outcome="completed"} 5120',
  '',
].join('\n')
