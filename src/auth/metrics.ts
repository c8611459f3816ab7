import { defineMetrics } from '#telemetry/metric-definition.ts'

export const authMetrics = defineMetrics({
  failures: {
    type: 'counter',
    name: 'sluice_auth_failures_total',
    help: 'Requests whose credential was refused.',
    labels: ['reason'],
  },
})
