import { Elysia } from 'elysia'
import { apiKeyRoutes } from './auth/routes.ts'
import type { Deps } from './deps.ts'
import { healthRoutes } from './http/health.ts'
import { requestLifecycle } from './http/request-lifecycle.ts'
import { newId } from './lib/id.ts'
import { modelRoutes } from './models/routes.ts'
import { responsesRoutes } from './surfaces/responses/routes.ts'

/** The table of contents of the product. */
export function buildApp(deps: Deps) {
  const { auth, catalogue, config, draining, generations, log } = deps
  const { now } = deps.clock
  // Elysia would look for the path behind the first eleven characters of a URL: `http://gw/v1/…` is
  // shorter than it thinks that an origin can be.
  return new Elysia({ handler: { standardHostname: false } })
    .use(requestLifecycle({ log, newRequestId: () => newId('req_'), draining }))
    .use(healthRoutes({ draining }))
    .use(apiKeyRoutes({ auth, config, now }))
    .use(modelRoutes({ auth, catalogue }))
    .use(responsesRoutes({ auth, catalogue, generations, config, log, now }))
}
