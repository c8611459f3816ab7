import type { Database } from '#db/client.ts'
import type { Log } from '#telemetry/log.ts'
import { createAdmission } from './admission.ts'
import { createOutputEstimate } from './estimate.ts'
import { createLeaseStore, type LeaseStore } from './lease-store.ts'
import { createLeases } from './leases.ts'
import { createMeters } from './meters.ts'
import { createPlans, type LimitScopes } from './plans.ts'
import type { Shortage } from './shortages.ts'
import type { LeaseTerm } from './slot-meter.ts'

/** How long slots outlive a process that was killed. */
const defaultLeaseMs = 6_000

export type CreateLimitsOptions = {
  database: Pick<Database, 'drizzle' | 'kind' | 'processName'>
  scopes: () => LimitScopes
  log: Pick<Log, 'warn' | 'info'>
  clockMs: () => number
  now: () => Date
  sleep: (ms: number) => Promise<void>
  onRefused: (shortage: Shortage) => void
  onExchange: (outcome: 'ok' | 'failed') => void
  leaseMs?: number
  /** A replacement for the leases in the database. */
  store?: LeaseStore
}

/** Limits of this process alone on an embedded database, and shared ones on a server. */
export function createLimits(options: CreateLimitsOptions) {
  const { database, scopes, log, clockMs, sleep, onExchange } = options
  const { leaseMs = defaultLeaseMs } = options
  // The embedded database has one process; on a server there may be more at any time.
  const isShared = database.kind === 'postgres'
  const term: LeaseTerm = { validUntilMs: Number.NEGATIVE_INFINITY, isOutage: false }
  const meters = createMeters({ term: isShared ? term : null, clockMs })
  const processId = database.processName
  const store = options.store ?? createLeaseStore(database, { processId, leaseMs })
  const leases = isShared
    ? createLeases({ meters, store, term, leaseMs, log, clockMs, sleep, onExchange })
    : null
  const plans = createPlans({ meters, scopes })
  return {
    ...createAdmission({ ...options, plans, outputs: createOutputEstimate(), leases }),
    meters,
    async close() {
      await leases?.close()
    },
  }
}
