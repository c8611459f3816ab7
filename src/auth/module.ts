import type { Audit } from '#audit/store.ts'
import { type Foundation, module } from '#module.ts'
import { createAuth } from './auth.ts'
import { tokens } from './doctor.ts'

/** Authentication of tokens and API keys, and the permissions of groups. */
export const authModule = module({
  name: 'auth',
  doctor: tokens,
  async start(needs: Foundation & { audit: Audit }) {
    const failures = needs.metrics.counter({
      name: 'sluice_auth_failures_total',
      help: 'Requests whose credential was refused.',
      labels: ['reason'],
    })
    const auth = await createAuth({ ...needs, onFailure: (reason) => failures.add(1, reason) })
    return { services: { auth }, close: () => auth.close() }
  },
})
