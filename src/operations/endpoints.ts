import { timingSafeEqual } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { contentTypes, formatOf } from '#telemetry/metrics-text.ts'
import type { Scrape } from '#telemetry/scrape.ts'

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
      handle: () =>
        draining()
          ? Response.json({ status: 'draining' }, { status: 503 })
          : Response.json({ status: 'ok' }),
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
      async handle({ request, server }) {
        if (token !== undefined) requireToken(request, token)
        else requireLocalClient(request, server?.requestIP(request)?.address)
        const format = formatOf(request.headers.get('accept'))
        const headers = { 'content-type': contentTypes[format], 'cache-control': 'no-store' }
        return new Response(await scrapeMetrics(format), { headers })
      },
    }),
  ]
}

function requireToken(request: Request, token: string): void {
  const [, sent = ''] = /^Bearer +(.+)$/i.exec(request.headers.get('authorization') ?? '') ?? []
  // `timingSafeEqual` needs equal lengths, which hashes have.
  if (!timingSafeEqual(sha256(sent), sha256(token))) throw new AppError('invalid_token', wrongToken)
}

/** Headers by which a proxy on this machine names the client that it forwards for. */
const forwardingHeaders = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via']

function requireLocalClient(request: Request, address = ''): void {
  const isLocal = /^(127(\.\d+){3}|::1|::ffff:127(\.\d+){3})$/.test(address)
  const isForwarded = forwardingHeaders.some((name) => request.headers.has(name))
  if (!isLocal || isForwarded) throw new AppError('permission_denied', notLocal)
}

function sha256(text: string): Uint8Array {
  return new Bun.CryptoHasher('sha256').update(text).digest()
}

function statusOf(status: string) {
  return Type.Object({ status: Type.Literal(status) })
}

const ok = { description: 'Yes.', content: json(statusOf('ok'), { status: 'ok' }) }
const wrongToken = 'This is not the metrics token.'
const notLocal = 'Metrics are available to clients on this machine only.'
const metricsExample = [
  '# HELP sluice_generations_total Finished generations.',
  '# TYPE sluice_generations_total counter',
  'sluice_generations_total{upstream="local",model="small",outcome="completed"} 5120',
  '',
].join('\n')
