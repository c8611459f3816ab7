import { costNanosOf } from '#limits/prices.ts'
import { type Foundation, module } from '#module.ts'
import { usageEndpoints } from './endpoints.ts'
import { createLedger } from './ledger.ts'
import { rollUp, sweepUsage, vacuumUsage, writeBatch } from './ledger-store.ts'
import { usageMetrics } from './metrics.ts'
import { startUpkeep } from './upkeep.ts'
import { createUsageStore } from './usage-store.ts'

/** The usage ledger: who used which model, and how much. */
export const usageModule = module({
  name: 'usage',
  tags: { Usage: 'Who used which model, and how much.' },
  metrics: [usageMetrics],
  start({ config, database, log, metrics, now }: Foundation) {
    const ledger = createLedger({
      write: (batch) => writeBatch(database, batch),
      priceOf: (model, used) => costNanosOf(config.prices, model, used),
      log,
      metrics,
      now,
    })
    const upkeep = startUpkeep({
      rollUp: () => rollUp(database),
      sweep: (at) =>
        sweepUsage(database, {
          keepDays: config.usage.retentionDays,
          keepSumsDays: config.usage.rollupRetentionDays,
          now: at,
        }),
      vacuum: database.kind === 'postgres' ? null : () => vacuumUsage(database),
      log,
      now,
    })
    return {
      services: { usageLedger: config.usage.enabled ? ledger : null },
      async close() {
        await ledger.close()
        await upkeep.close()
      },
    }
  },
  endpoints: ({ database, now }: Foundation) =>
    usageEndpoints({ usage: createUsageStore(database), now }),
})
