import { type Foundation, module } from '#module.ts'
import { createLimits } from './create-limits.ts'

/** Limits of callers and models. */
export const limitsModule = module({
  name: 'limits',
  start({ database, log, metrics, now, settings }: Foundation) {
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
    const limits = createLimits({
      database,
      scopes: () => settings.current().limits,
      log,
      clockMs: () => performance.now(),
      now,
      sleep: Bun.sleep,
      onRefused: ({ scope, name }) => refused.add(1, scope, name),
      onExchange: (outcome) => exchanges.add(1, outcome),
    })
    metrics.gauge(
      { name: 'sluice_limit_meters', help: 'Limits in force in this process.' },
      limits.meters.size,
    )
    return { services: { limits }, close: limits.close }
  },
})
