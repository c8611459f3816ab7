import { expect, test } from 'bun:test'
import { type UpstreamRecord, upstreamExample } from '#models/upstream-record.ts'
import { mergeTraffic } from '#traffic/merge.ts'
import { type CallReport, listedCallsMax, type TrafficReport } from '#traffic/report.ts'

const call = (requestId: string, elapsedMs: number): CallReport => ({
  requestId,
  userId: 'ann',
  keyId: null,
  model: 'demo',
  agentId: null,
  surface: 'responses',
  upstream: 'gpu-1',
  phase: 'streaming',
  elapsedMs,
  firstEventMs: 1,
  outputChars: 0,
  retries: 0,
})

const report = (worker: string, given: Partial<TrafficReport>): TrafficReport => ({
  worker,
  running: given.calls?.length ?? 0,
  phases: { waiting: 0, started: 0, streaming: 0, whole: 0 },
  websockets: 1,
  calls: [],
  queues: [],
  upstreams: [],
  ...given,
})

test('numbers of the workers are added, and the longest running calls are listed', () => {
  const young = Array.from({ length: listedCallsMax }, (_, at) => call(`young ${at}`, at))
  const traffic = mergeTraffic({
    reports: [
      report('1', { calls: young, queues: [{ model: 'demo', priority: 'batch', waiting: 2 }] }),
      report('2', {
        calls: [call('old', 90_000)],
        queues: [
          { model: 'demo', priority: 'batch', waiting: 3 },
          { model: 'demo', priority: 'interactive', waiting: 1 },
        ],
      }),
    ],
    missing: 1,
  })
  expect(traffic).toMatchObject({
    workers: { reporting: 2, missing: 1 },
    running: listedCallsMax + 1,
    websockets: 2,
    queues: [
      { priority: 'batch', waiting: 5 },
      { priority: 'interactive', waiting: 1 },
    ],
  })
  expect(traffic.calls).toHaveLength(listedCallsMax)
  expect(traffic.calls[0]).toMatchObject({ requestId: 'old', worker: '2' })
})

test('an upstream has the sums of all workers, the worst state and the latest failure', () => {
  const [model] = upstreamExample.models
  if (model === undefined) throw new Error('the example has a model')
  const ejected: UpstreamRecord = {
    ...upstreamExample,
    state: 'ejected',
    ejected_until: '2026-11-21T09:31:00.000Z',
    max_in_flight: 4,
    last_failure: { kind: 'upstream_timeout', at: '2026-11-21T09:30:59.000Z' },
    models: [{ ...model, state: 'ejected', first_event_ms: 900, response_ms: null }],
  }
  const { upstreams } = mergeTraffic({
    reports: [
      report('1', { upstreams: [{ ...upstreamExample, max_in_flight: 4 }] }),
      report('2', { upstreams: [ejected] }),
    ],
    missing: 0,
  })
  expect(upstreams).toEqual([
    {
      ...ejected,
      in_flight: 6,
      max_in_flight: 8,
      requests: 10_240,
      failures: 8,
      models: [{ ...model, state: 'ejected', first_event_ms: 900, response_ms: 1_850 }],
    },
  ])
})
