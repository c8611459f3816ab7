import type { Audit } from '#audit/store.ts'
import { type Foundation, module } from '#module.ts'
import { createBudgetStore } from './budget-store.ts'
import { createBudgets } from './budgets.ts'
import { createLimits } from './create-limits.ts'

/** Limits of callers and models. */
export const limitsModule = module({
  name: 'limits',
  start({ audit, config, database, log, metrics, now, settings }: Foundation & { audit: Audit }) {
    const refused = metrics.counter({
      name: 'sluice_limit_refusals_total',
      help: 'Calls refused by a limit, by whose limit it is and its name.',
      labels: ['scope', 'limit'],
    })
    const exchanges = metrics.counter({
      name: 'sluice_limit_lease_exchanges_total',
      help: 'Exchanges of leased shares with the database, by outcome.',
      labels: ['outcome'],
    })
    const warned = metrics.counter({
      name: 'sluice_budget_warnings_total',
      help: 'Soft budgets that were exceeded, by whose they are.',
      labels: ['owner'],
    })
    const clockMs = () => performance.now()
    const budgets = createBudgets({
      scopes: () => settings.current().budgets,
      prices: config.prices,
      store: createBudgetStore(database),
      log,
      clockMs,
      now,
      async warn({ owner: { type, id }, period, tokens, cost, budget }) {
        warned.add(1, type)
        log.warn('soft budget exceeded', { owner: type, id, period, tokens, cost })
        await audit.record({
          actor: null,
          action: 'budget.exceed',
          resource: { type, id },
          changes: { before: null, after: { period, tokens, cost, budget } },
        })
      },
    })
    const limits = createLimits({
      budgets,
      database,
      scopes: () => settings.current().limits,
      log,
      clockMs,
      now,
      sleep: Bun.sleep,
      onRefused: ({ scope, name }) => refused.add(1, scope, name),
      onExchange: (outcome) => exchanges.add(1, outcome),
    })
    metrics.gauge(
      { name: 'sluice_limit_meters', help: 'Limits in force in this process.' },
      limits.meters.size,
    )
    return {
      services: { limits, budgets },
      async close() {
        await limits.close()
        await budgets.close()
      },
    }
  },
})
