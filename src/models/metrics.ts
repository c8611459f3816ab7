import { defineMetrics } from '#telemetry/metric-definition.ts'

const ofTarget = ['upstream', 'model'] as const

export const routingMetrics = defineMetrics({
  inFlight: {
    type: 'gauge',
    name: 'sluice_upstream_in_flight',
    help: 'Requests in progress at an upstream.',
    across: 'sum',
    labels: ['upstream'],
  },
  state: {
    type: 'gauge',
    name: 'sluice_upstream_state',
    help: '1 for the state of an upstream: available, suspect, recovering, half_open, ejected or draining. Each worker judges by itself, so several states may be 1.',
    across: 'max',
    labels: ['upstream', 'state'],
  },
  attempts: {
    type: 'counter',
    name: 'sluice_upstream_attempts_total',
    help: 'Attempts at an upstream, with retries.',
    labels: ['upstream'],
  },
  failures: {
    type: 'counter',
    name: 'sluice_upstream_failures_total',
    help: 'Attempts that failed because of the upstream.',
    labels: ['upstream'],
  },
  ejections: {
    type: 'counter',
    name: 'sluice_upstream_ejections_total',
    help: 'Ejections of an upstream.',
    labels: ['upstream'],
  },
  retriesRefused: {
    type: 'counter',
    name: 'sluice_upstream_retries_refused_total',
    help: 'Retries that the budget of an upstream did not allow.',
    labels: ['upstream'],
  },
  modelEjections: {
    type: 'counter',
    name: 'sluice_model_ejections_total',
    help: 'Ejections of a model of an upstream.',
    labels: ofTarget,
  },
  firstEvent: {
    type: 'gauge',
    name: 'sluice_target_first_event_seconds',
    help: 'Usual time to the first output of a stream, by which requests are balanced; the highest of the workers.',
    across: 'max',
    labels: ofTarget,
  },
})
