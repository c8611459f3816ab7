import { defineMetrics } from '#telemetry/metric-definition.ts'

export const limitMetrics = defineMetrics({
  refused: {
    type: 'counter',
    name: 'sluice_limit_refusals_total',
    help: 'Calls refused by a limit, by whose limit it is (`key`, `user`, `model`) and its name.',
    labels: ['scope', 'limit'],
  },
  exchanges: {
    type: 'counter',
    name: 'sluice_limit_lease_exchanges_total',
    help: 'Exchanges of leased shares with the database, by outcome.',
    labels: ['outcome'],
  },
  meters: {
    type: 'gauge',
    name: 'sluice_limit_meters',
    help: 'Limits in force, counted by each worker that uses them. Idle ones are evicted.',
    across: 'sum',
  },
  budgetWarnings: {
    type: 'counter',
    name: 'sluice_budget_warnings_total',
    help: 'Soft budgets that were exceeded, by whose they are.',
    labels: ['owner'],
  },
  budgetRefusals: {
    type: 'counter',
    name: 'sluice_budget_refusals_total',
    help: 'Calls refused because a budget is used up, by whose it is.',
    labels: ['owner'],
  },
})
