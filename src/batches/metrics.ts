import { defineMetrics } from '#telemetry/metric-definition.ts'

export const batchMetrics = defineMetrics({
  open: {
    type: 'gauge',
    name: 'sluice_batches',
    help: 'Unfinished batches of all replicas, by status.',
    across: 'same',
    labels: ['status'],
  },
  pending: {
    type: 'gauge',
    name: 'sluice_batch_lines_pending',
    help: 'Requests of unfinished batches without an answer, of all replicas.',
    across: 'same',
  },
  running: {
    type: 'gauge',
    name: 'sluice_batch_lines_running',
    help: 'Requests of batches in progress.',
    across: 'sum',
  },
  lines: {
    type: 'counter',
    name: 'sluice_batch_lines_total',
    help: 'Answered requests of batches: completed or failed.',
    labels: ['endpoint', 'outcome'],
  },
  ended: {
    type: 'counter',
    name: 'sluice_batches_ended_total',
    help: 'Ended batches: completed, failed, expired or cancelled.',
    labels: ['endpoint', 'status'],
  },
})
