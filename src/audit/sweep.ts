import type { Config } from '#config/schema.ts'
import { type PeriodicTask, repeat } from '#lib/repeat.ts'
import type { Log } from '#telemetry/log.ts'
import { type AuditDatabase, createAuditStore } from './store.ts'

export type AuditSweepDeps = {
  database: AuditDatabase
  settings: Config['audit']
  log: Pick<Log, 'warn'>
  now: () => Date
}

const sweepEveryMs = 600_000
const rowsPerStatement = 1_000
/** The rest is left to the next sweep. */
const statementsMax = 500
const dayMs = 86_400_000

/** Deletes expired entries periodically. */
export function startAuditSweep(deps: AuditSweepDeps): PeriodicTask {
  const sweep = createAuditSweep(deps)
  const { log } = deps
  return repeat(sweep, { everyMs: sweepEveryMs, log, failed: 'audit sweep failed' })
}

export function createAuditSweep({ database, settings, now }: Omit<AuditSweepDeps, 'log'>) {
  const store = createAuditStore(database)
  return async (): Promise<void> => {
    // Ids start with their time, so comparing ids compares ages.
    const keptFrom = now().getTime() - settings.keepDays * dayMs
    const smallestKept = Bun.randomUUIDv7('hex', keptFrom)
    for (let statements = 0; statements < statementsMax; statements++) {
      if (await store.dropBefore(smallestKept, rowsPerStatement)) return
    }
  }
}
