import { defineMetrics } from './metric-definition.ts'

export const registryMetrics = defineMetrics({
  overflows: {
    type: 'counter',
    name: 'sluice_metrics_overflow_total',
    help: 'Updates of label sets beyond the series limit of a metric; the series whose labels are all `other` contains them.',
    labels: ['metric'],
  },
})
