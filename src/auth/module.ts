import type { Audit } from '#audit/audit.ts'
import { type Foundation, module } from '#module.ts'
import { type Auth, createAuth } from './auth.ts'
import { countRefusals } from './count-refusals.ts'
import { apiKeyRoutes } from './routes.ts'

/** Who is calling, and the API keys of users. */
export const authModule = module({
  name: 'auth',
  async start(needs: Foundation & { audit: Audit }) {
    const refusals = needs.metrics.counter({
      name: 'sluice_auth_failures_total',
      help: 'Requests whose credential was refused.',
      labels: ['reason'],
    })
    const auth = countRefusals(await createAuth(needs), (reason) => refusals.add(1, reason))
    return { services: { auth }, close: () => auth.close() }
  },
  routes: (services: Pick<Foundation, 'config' | 'now'> & { auth: Auth }) => [
    apiKeyRoutes(services),
  ],
})
