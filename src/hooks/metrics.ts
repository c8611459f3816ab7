import { defineMetrics } from '#telemetry/metric-definition.ts'

export const hookMetrics = defineMetrics({
  checks: {
    type: 'counter',
    name: 'sluice_hook_checks_total',
    help: 'Checks of hooks (before, output, after): allowed, changed, refused or failed.',
    labels: ['hook', 'stage', 'outcome'],
  },
  seconds: {
    type: 'histogram',
    name: 'sluice_hook_check_seconds',
    help: 'Duration of the checks of hooks.',
    labels: ['hook', 'stage'],
    bounds: [0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
})
