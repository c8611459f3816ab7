import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import { type Audit, createAudit } from './audit.ts'
import { auditRoutes } from './routes.ts'
import { startAuditSweep } from './sweep.ts'

/** The record of what administrators did. */
export const auditModule = module({
  name: 'audit',
  start({ database, config, log, now }: Foundation) {
    const sweep = startAuditSweep({ database, settings: config.audit, log, now })
    return { services: { audit: createAudit({ database, now }) }, close: () => sweep.stop() }
  },
  routes: (services: { auth: Auth; audit: Audit }) => [auditRoutes(services)],
})
