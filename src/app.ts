import { Elysia } from 'elysia'
import { allowedMethods } from './api/allowed-methods.ts'
import type { Endpoint } from './api/endpoint.ts'
import { mountEndpoints } from './api/mount.ts'
import { docsEndpoints } from './docs/endpoints.ts'
import { createCors } from './edges/cors.ts'
import { securityHeaders } from './edges/security-headers.ts'
import { requestLifecycle } from './http/request-lifecycle.ts'
import { newId } from './lib/id.ts'
import { modules, type Services } from './modules.ts'
import { socketSettings } from './surfaces/responses/websocket.ts'
import { createAccessLog } from './telemetry/access-log.ts'
import { observeExchanges } from './telemetry/tracing/request-span.ts'

/** The HTTP application: the request lifecycle and the endpoints of every module. */
export function buildApp(services: Services) {
  const { config, log, clientAddresses, draining } = services
  const standardHeaders = securityHeaders(config)
  const endpoints = listEndpoints(services)
  // Elysia would look for the path behind the first eleven characters of a URL: `http://gw/v1/…` is
  // shorter than it expects an origin to be.
  const allowed = allowedMethods(endpoints)
  return new Elysia({ handler: { standardHostname: false }, websocket: socketSettings(config) })
    .use(
      requestLifecycle({
        observer: observeExchanges(createAccessLog({ log, mode: () => config.accessLog })),
        newRequestId: () => newId('req_'),
        draining,
        allowedMethods: allowed,
        securityHeaders: standardHeaders,
        cors: createCors(config.cors, {
          endpoints,
          allowedMethods: allowed,
          clientAddresses,
          publicUrl: config.login.publicUrl,
        }),
        metrics: services.httpMetrics,
        tracer: services.tracer,
      }),
    )
    .use(mountEndpoints(endpoints, { ...services, securityHeaders: standardHeaders }))
}

/** Every endpoint of the API. */
export function listEndpoints(services: Services): readonly Endpoint[] {
  const endpoints = modules.flatMap((module) => module.endpoints?.(services) ?? [])
  const tags = Object.assign({}, ...modules.map((module) => module.tags))
  const { config } = services
  endpoints.push(...docsEndpoints({ config, tags, listEndpoints: () => endpoints }))
  return endpoints
}
