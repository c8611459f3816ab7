import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { brandingEndpoints } from './endpoints.ts'
import { type Branding, createBranding } from './store.ts'

/** The look of the portal. */
export const brandingModule = module({
  name: 'branding',
  tags: { Branding: 'Theme and logo of the web interface.' },
  start: ({ config, database, now, sealer }: Foundation & { sealer: Sealer }) => ({
    services: { branding: createBranding(database, { settings: config.branding, sealer, now }) },
  }),
  endpoints: (services: { auth: Auth; branding: Branding }) => brandingEndpoints(services),
})
