import { defineMetrics } from '#telemetry/metric-definition.ts'

export const responseMetrics = defineMetrics({
  running: {
    type: 'gauge',
    name: 'sluice_responses_running',
    help: 'Stored responses in progress.',
    across: 'sum',
  },
})
