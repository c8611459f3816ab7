import { defineMetrics } from '#telemetry/metric-definition.ts'

export const usageMetrics = defineMetrics({
  written: {
    type: 'counter',
    name: 'sluice_usage_records_written_total',
    help: 'Records of the usage ledger that the database holds.',
  },
  dropped: {
    type: 'counter',
    name: 'sluice_usage_records_dropped_total',
    help: 'Records of the usage ledger that were lost because the database did not accept them.',
  },
  pending: {
    type: 'gauge',
    name: 'sluice_usage_records_pending',
    help: 'Records of the usage ledger that wait to be written.',
    across: 'sum',
  },
})
