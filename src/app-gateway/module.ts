import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import { appGatewayEndpoints } from './endpoints.ts'
import { createTelemetry } from './telemetry.ts'

/** The contract between applications of the Messages protocol and a company's gateway. */
export const appGatewayModule = module({
  name: 'app-gateway',
  tags: { Applications: 'What coding and desktop applications expect of a company gateway.' },
  endpoints: (services: Foundation & { auth: Auth }) =>
    // Platform 1.2.1 added /compat.
    services.config.platformVersion === '1.2.0'
      ? []
      : appGatewayEndpoints({ ...services, receive: createTelemetry(services) }),
})
