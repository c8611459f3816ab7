import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { type Branding, createBranding } from './branding.ts'
import { brandingRoutes } from './routes.ts'

/** How the portal looks. */
export const brandingModule = module({
  name: 'branding',
  start: ({ config, database, now, sealer }: Foundation & { sealer: Sealer }) => ({
    services: { branding: createBranding(database, { settings: config.branding, sealer, now }) },
  }),
  routes: (services: Foundation & { auth: Auth; branding: Branding }) => [brandingRoutes(services)],
})
