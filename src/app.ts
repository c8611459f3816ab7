import { Elysia } from 'elysia'
import { mountEndpoints } from './api/mount.ts'
import { describeEndpoint } from './docs/describe-endpoint.ts'
import { docsEndpoints } from './docs/endpoints.ts'
import { requestLifecycle } from './http/request-lifecycle.ts'
import { newId } from './lib/id.ts'
import { modules, type Services } from './modules.ts'
import { socketSettings } from './surfaces/responses/websocket.ts'

/** The HTTP application: the request lifecycle and the endpoints of every module. */
export function buildApp(services: Services) {
  const { auth, config, log, draining } = services
  const app =
    // Elysia would look for the path behind the first eleven characters of a URL: `http://gw/v1/…`
    // is shorter than it expects an origin to be.
    new Elysia({ handler: { standardHostname: false }, websocket: socketSettings(config) })
  const endpoints = [
    ...modules.flatMap((module) => module.endpoints?.(services) ?? []),
    ...docsEndpoints({ config, listRoutes: () => app.routes }),
  ]
  app
    .use(requestLifecycle({ log, newRequestId: () => newId('req_'), draining }))
    .use(mountEndpoints(endpoints, { auth, config, describe: describeEndpoint }))
  for (const module of modules) {
    for (const routes of module.routes?.(services) ?? []) app.use(routes)
  }
  return app
}
