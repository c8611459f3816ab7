import { defineMetrics } from '#telemetry/metric-definition.ts'

export const webhookMetrics = defineMetrics({
  attempts: {
    type: 'counter',
    name: 'sluice_webhook_attempts_total',
    help: 'Attempts to deliver an event: delivered, refused (another status than 2xx) or failed (no response).',
    labels: ['outcome'],
  },
})
