import { defineMetrics } from '#telemetry/metric-definition.ts'

export const databaseMetrics = defineMetrics({
  up: {
    type: 'gauge',
    name: 'sluice_database_up',
    help: 'Whether the database answers the worker that responds to the scrape.',
    across: 'same',
  },
  ping: {
    type: 'gauge',
    name: 'sluice_database_ping_seconds',
    help: 'Round trip of `select 1` during the scrape, with the wait for a connection.',
    across: 'same',
  },
  pending: {
    type: 'gauge',
    name: 'sluice_database_queries_pending',
    help: 'Queries that requests wait for.',
    across: 'sum',
  },
  unavailable: {
    type: 'counter',
    name: 'sluice_database_unavailable_total',
    help: 'Queries of requests that were refused or failed because the database was unavailable or slow.',
  },
})

export const operationsMetrics = defineMetrics({
  socketsOpen: {
    type: 'gauge',
    name: 'sluice_websockets_open',
    help: 'Open WebSockets.',
    across: 'sum',
  },
  socketsBusy: {
    type: 'gauge',
    name: 'sluice_websockets_busy',
    help: 'WebSockets with work in progress or unsent bytes.',
    across: 'sum',
  },
  draining: {
    type: 'gauge',
    name: 'sluice_draining',
    help: '1 while a worker finishes its streams before it ends.',
    across: 'max',
  },
})
