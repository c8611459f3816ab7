import { defineMetrics } from '#telemetry/metric-definition.ts'

export const jobMetrics = defineMetrics({
  jobs: {
    type: 'gauge',
    name: 'sluice_jobs',
    help: 'Background jobs in the database, of all replicas: waiting, running, or failed and waiting for a retry.',
    across: 'same',
    labels: ['queue', 'state'],
  },
  oldest: {
    type: 'gauge',
    name: 'sluice_jobs_oldest_due_seconds',
    help: 'How long the oldest job that could run has been waiting.',
    across: 'same',
    labels: ['queue'],
  },
  duration: {
    type: 'histogram',
    name: 'sluice_job_duration_seconds',
    help: 'One attempt of a job, by outcome: completed, retried, failed (permanently) or released.',
    labels: ['queue', 'outcome'],
    bounds: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800],
  },
})
