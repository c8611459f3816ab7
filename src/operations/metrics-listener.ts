import { errorResponse } from '#http/error-envelope.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { contentTypes, formatOf } from '#telemetry/metrics-text.ts'
import type { Scrape } from '#telemetry/scrape.ts'
import { requireMetricsAccess } from './metrics-access.ts'

/** The response to a scrape, on the port of the API and on that of the supervisor. */
export async function metricsResponse(scrape: Scrape, request: Request): Promise<Response> {
  const format = formatOf(request.headers.get('accept'))
  const headers = { 'content-type': contentTypes[format], 'cache-control': 'no-store' }
  return new Response(await scrape(format), { headers })
}

export type Readiness = 'ok' | 'starting' | 'draining'

const paths = ['/metrics', '/livez', '/readyz']

/** The response of `/livez` and `/readyz`. */
export function probeResponse(status: Readiness): Response {
  return Response.json({ status }, { status: status === 'ok' ? 200 : 503 })
}

/**
 * Serves `GET /metrics` and probes in the supervisor, as plain HTTP. On the port that the workers share,
 * the kernel may hand a scrape to a worker that is stopped or overloaded, and TLS may ask for a client
 * certificate; this one needs none of them.
 */
export function listenForScrapes(options: {
  host: string
  port: number
  token: string | undefined
  scrape: Scrape
  readiness: () => Readiness
}): { readonly port: number } {
  const { host, port, token, scrape, readiness } = options
  const respond = async (request: Request, listening: Bun.Server<undefined>) => {
    const { method } = request
    const { pathname: path } = new URL(request.url)
    try {
      if (!paths.includes(path))
        throw new AppError('not_found', `No such endpoint: ${method} ${path}.`)
      if (method !== 'GET' && method !== 'HEAD') {
        throw new AppError('method_not_allowed', `${path} does not support ${method}; use GET.`, {
          allowedMethods: ['GET'],
        })
      }
      if (path !== '/metrics') return probeResponse(path === '/livez' ? 'ok' : readiness())
      requireMetricsAccess(token, request, listening.requestIP(request)?.address)
      return await metricsResponse(scrape, request)
    } catch (error) {
      return errorResponse(toAppError(error), { path, requestId: newId('req_') })
    }
  }
  const server = Bun.serve({ hostname: host, port, development: false, fetch: respond })
  return { port: server.port ?? port }
}
