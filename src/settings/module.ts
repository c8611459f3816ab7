import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import { type SettingsRoutesDeps, settingsRoutes } from './routes.ts'

/** What administrators change while the system runs. */
export const settingsModule = module({
  name: 'settings',
  routes: (services: Foundation & { auth: Auth } & SettingsRoutesDeps) => [
    settingsRoutes(services),
  ],
})
