import type { Plan } from './plans.ts'
import type { Shortage } from './shortages.ts'

/** Shares of limits that this process leases from the database. */
export type Leases = {
  /** Whether asking the database may help. */
  mayLease(shortages: readonly Shortage[], nowMs: number): boolean
  /** Leases what is missing; resolves when the database has answered, or is unreachable. */
  lease(shortages: readonly Shortage[]): Promise<void>
  /** Leases more in the background before a share runs out. */
  refill(plan: Plan, nowMs: number): void
  /** Reports debts and returns slots in the background. */
  settled(plan: Plan): void
  close(): Promise<void>
}
