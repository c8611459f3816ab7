import type { Audit } from '#audit/store.ts'
import { type Foundation, module } from '#module.ts'
import { createBudgetStore } from './budget-store.ts'
import { createBudgets } from './budgets.ts'
import { createLimits } from './create-limits.ts'
import { limitEndpoints } from './endpoints.ts'
import { limitMetrics } from './metrics.ts'
import { createLimitUses, type LimitUses } from './use.ts'
import { createUseStore } from './use-store.ts'

/** Limits of callers and models. */
export const limitsModule = module({
  name: 'limits',
  metrics: [limitMetrics],
  start({ audit, config, database, log, metrics, now, settings }: Foundation & { audit: Audit }) {
    const refused = metrics.counter(limitMetrics.refused)
    const exchanges = metrics.counter(limitMetrics.exchanges)
    const warned = metrics.counter(limitMetrics.budgetWarnings)
    const overspent = metrics.counter(limitMetrics.budgetRefusals)
    const clockMs = () => performance.now()
    const budgets = createBudgets({
      scopes: () => settings.current().budgets,
      prices: () => config.prices,
      store: createBudgetStore(database),
      log,
      clockMs,
      now,
      onRefused: ({ type }) => overspent.add(1, type),
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
    metrics.gauge(limitMetrics.meters, limits.meters.size)
    const limitUses = createLimitUses({
      meters: limits.isShared ? null : limits.meters,
      limits: () => settings.current().limits,
      budgets: () => settings.current().budgets,
      store: createUseStore(database),
      clockMs,
      now,
    })
    return {
      services: { limits, budgets, limitUses },
      async close() {
        await limits.close()
        await budgets.close()
      },
    }
  },
  endpoints: (services: Foundation & { limitUses: LimitUses }) => limitEndpoints(services),
})
