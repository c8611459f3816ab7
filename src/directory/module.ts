import type { Audit } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import { createDirectory, type Directory } from './directory.ts'
import { directoryRoutes } from './routes.ts'

/** Users, groups and service accounts. */
export const directoryModule = module({
  name: 'directory',
  start: (needs: Foundation & { auth: Auth; audit: Audit }) => ({
    services: { directory: createDirectory(needs) },
  }),
  routes: (services: Foundation & { auth: Auth; directory: Directory }) => [
    directoryRoutes(services),
  ],
})
