import { repeat } from '#lib/repeat.ts'
import { type Foundation, module } from '#module.ts'
import { auditEndpoints } from './endpoints.ts'
import { type Audit, createAudit, sweepAuditLog } from './store.ts'

const sweepEveryMs = 600_000

/** The record of administrative changes. */
export const auditModule = module({
  name: 'audit',
  start({ database, config, log, now }: Foundation) {
    const sweep = () => sweepAuditLog(database, { keepDays: config.audit.keepDays, now: now() })
    const { stop } = repeat(sweep, { everyMs: sweepEveryMs, log, failed: 'audit sweep failed' })
    return { services: { audit: createAudit({ database, now }) }, close: stop }
  },
  endpoints: (services: { audit: Audit }) => auditEndpoints(services),
})
