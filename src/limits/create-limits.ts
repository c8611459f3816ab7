import type { Database } from '#db/client.ts'
import type { Admit, Reservation } from '#inference/inference.ts'
import type { Log } from '#telemetry/log.ts'
import { createAdmission } from './admission.ts'
import { BudgetReservation, type Budgets } from './budgets.ts'
import { createOutputEstimate } from './estimate.ts'
import { createLeaseStore, type LeaseStore } from './lease-store.ts'
import { createLeases } from './leases.ts'
import { createMeters } from './meters.ts'
import { createPlans, type LimitScopes } from './plans.ts'
import type { Shortage } from './shortages.ts'
import type { LeaseTerm } from './slot-meter.ts'
import { withWaiting } from './waiting.ts'

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
  budgets: Budgets | null
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
  const plans = createPlans({ meters, scopes })
  const { isConfigured } = plans
  const leases = isShared
    ? createLeases({ meters, store, term, leaseMs, log, clockMs, sleep, isConfigured, onExchange })
    : null
  const outputs = createOutputEstimate()
  const admission = createAdmission({ ...options, plans, outputs, leases })
  const { budgets } = options
  const admit = budgets === null ? admission.admit : withBudgets(admission.admit, budgets)
  return {
    ...admission,
    admit: withWaiting(admit, sleep),
    meters,
    isShared,
    async close() {
      await leases?.close()
    },
  }
}

/** Budgets are checked first, since they take nothing; what a call used is charged when it ends. */
function withBudgets(admit: Admit, budgets: Budgets): Admit {
  return (kind, call, model, input) => {
    const accounts = budgets.accountsOf(call.context.principal)
    if (accounts === null) return admit(kind, call, model, input)
    const charged = (inner: Reservation | null) =>
      new BudgetReservation(inner, budgets, accounts, input)
    const checked = call.continues === true ? null : budgets.check(accounts)
    if (checked !== null) {
      return checked.then(async () => charged(await admit(kind, call, model, input)))
    }
    const admitted = admit(kind, call, model, input)
    return admitted instanceof Promise ? admitted.then(charged) : charged(admitted)
  }
}
