import { timingSafeEqual } from 'node:crypto'
import { Elysia } from 'elysia'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import type { GatewayMetrics } from '#telemetry/gateway-metrics.ts'
import { metricsOperation } from './metrics-operation.ts'

export type MetricsRoutesDeps = {
  config: Pick<Config, 'metrics'>
  metrics: Pick<GatewayMetrics, 'render'>
}

const contentType = 'text/plain; version=0.0.4; charset=utf-8'

/** Figures for monitoring, which have a token of their own, since no user asks for them. */
export function metricsRoutes({ config, metrics }: MetricsRoutesDeps) {
  const { token } = config.metrics
  return new Elysia({ name: 'metrics' }).get(
    '/metrics',
    async ({ request, server }) => {
      if (token !== undefined) demandToken(request, token)
      else demandNeighbour(request, server?.requestIP(request)?.address)
      const headers = { 'content-type': contentType, 'cache-control': 'no-store' }
      return new Response(await metrics.render(), { headers })
    },
    { detail: metricsOperation },
  )
}

function demandToken(request: Request, token: string): void {
  const [, sent = ''] = /^Bearer +(.+)$/i.exec(request.headers.get('authorization') ?? '') ?? []
  // Hashes have one length, whatever was sent.
  if (timingSafeEqual(hashOf(sent), hashOf(token))) return
  throw new AppError('invalid_token', 'This is not the token for the figures.')
}

/** What proxies on this machine say of those for whom they ask. */
const forwardingHeaders = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via']

function demandNeighbour(request: Request, address = ''): void {
  const isNeighbour = /^(127(\.\d+){3}|::1|::ffff:127(\.\d+){3})$/.test(address)
  const isForwarded = forwardingHeaders.some((name) => request.headers.has(name))
  if (isNeighbour && !isForwarded) return
  throw new AppError('permission_denied', 'The figures are for callers on this machine.')
}

function hashOf(text: string): Uint8Array {
  return new Bun.CryptoHasher('sha256').update(text).digest()
}
