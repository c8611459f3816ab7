import { type Foundation, module } from '#module.ts'
import { type Audit, createAudit } from './audit.ts'
import { auditEndpoints } from './endpoints.ts'
import { startAuditSweep } from './sweep.ts'

/** The record of administrative changes. */
export const auditModule = module({
  name: 'audit',
  start({ database, config, log, now }: Foundation) {
    const sweep = startAuditSweep({ database, settings: config.audit, log, now })
    return { services: { audit: createAudit({ database, now }) }, close: () => sweep.stop() }
  },
  endpoints: (services: { audit: Audit }) => auditEndpoints(services),
})
