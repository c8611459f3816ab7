import type { Audit } from '#audit/store.ts'
import { type Foundation, module } from '#module.ts'
import { createAuth } from './auth.ts'
import { tokens } from './doctor.ts'
import { requireKeySet } from './jwks.ts'
import { authMetrics } from './metrics.ts'

/** Authentication of tokens and API keys, and the permissions of groups. */
export const authModule = module({
  name: 'auth',
  doctor: tokens,
  metrics: [authMetrics],
  async start(needs: Foundation & { audit: Audit }) {
    const failures = needs.metrics.counter(authMetrics.failures)
    const auth = await createAuth({ ...needs, onFailure: (reason) => failures.add(1, reason) })
    return {
      services: { auth },
      async reload(next, before) {
        if (next.jwt.jwksUrl !== undefined && next.jwt.jwksUrl !== before.jwt.jwksUrl) {
          await requireKeySet({ url: next.jwt.jwksUrl, fetch: needs.fetch })
        }
        await auth.changeGroups(before.groups, next.groups)
        return () => {
          if (!Bun.deepEquals(before.jwt, next.jwt)) auth.changeTokenTrust(next.jwt)
        }
      },
      close: () => auth.close(),
    }
  },
})
