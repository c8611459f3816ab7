import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { collectMsMax, createFleetMetrics, type FleetMetrics } from '#telemetry/fleet-metrics.ts'
import { createMetricRegistry } from '#telemetry/metrics.ts'
import type { MetricsReport, MetricsRequest } from '#telemetry/metrics-messages.ts'
import { connectMetrics } from '#telemetry/scrape.ts'
import { readMetrics } from '#test/support/metrics-text.ts'

/** A supervisor and its workers, connected as by their channels. */

const pollMs = 2_000
let nowMs = 0
let fleet: FleetMetrics
let workersStarted = 0

beforeEach(() => {
  jest.useFakeTimers()
  nowMs = 0
  workersStarted = 0
  const registry = createMetricRegistry({ seriesMax: 10 })
  fleet = createFleetMetrics({ registry, workersConfigured: 2, nowMs: () => nowMs })
})
afterEach(() => {
  fleet.close()
  jest.useRealTimers()
})

const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}
/** Lets timers up to this time run. */
async function pass(ms: number): Promise<void> {
  await settle()
  for (let passed = 0; passed < ms; passed += 500) {
    nowMs += 500
    jest.advanceTimersByTime(500)
    await settle()
  }
}

function startWorker() {
  const number = ++workersStarted
  const registry = createMetricRegistry({ seriesMax: 10 })
  const calls = registry.counter({ type: 'counter', name: 'calls_total', help: 'All.' })
  const times = registry.histogram({ type: 'histogram', name: 'times', help: 'All.', bounds: [1] })
  const running = { count: 0 }
  const rows = { count: 0 }
  const gauge = { type: 'gauge', help: 'Now.' } as const
  registry.gauge({ ...gauge, name: 'running', across: 'sum' }, () => running.count)
  registry.gauge({ ...gauge, name: 'oldest', across: 'max' }, () => number)
  registry.gauge({ ...gauge, name: 'least', across: 'min' }, () => number)
  const shared = { ...gauge, name: 'rows', across: 'same', labels: ['of'] } as const
  registry.sharedGauge(shared, async () => (rows.count === 0 ? [] : [[rows.count, 'jobs']]))

  const requests: MetricsRequest[] = []
  let listen: (message: MetricsRequest) => void = () => {}
  let isStopped = false
  const deliver = () => {
    while (!isStopped && requests.length > 0) {
      const request = requests.shift()
      if (request !== undefined) listen(request)
    }
  }
  const toWorker = (request: MetricsRequest) => {
    requests.push(request)
    queueMicrotask(deliver)
  }
  const member = fleet.add(toWorker)
  const send = (report: MetricsReport) => queueMicrotask(() => member.received(report))
  const link = connectMetrics(registry, {
    send,
    onMessage: (listener) => {
      listen = listener
    },
  })
  return {
    calls,
    times,
    running,
    rows,
    link,
    report: link.report,
    scrape: async () => readMetrics(await link.scrape('prometheus')),
    stop: () => {
      isStopped = true
    },
    continue: () => {
      isStopped = false
      deliver()
    },
    kill: () => member.ended(),
    unread: () => requests.length,
  }
}

test('counters and buckets add up, gauges as they declare', async () => {
  const [one, two] = [startWorker(), startWorker()]
  one.calls.add(3)
  two.calls.add(4)
  one.times.observe(0.5)
  two.times.observe(5)
  one.running.count = 2
  two.running.count = 5
  for (const worker of [one, two]) {
    const metrics = await worker.scrape()
    expect(metrics.get('calls_total')).toBe(7)
    expect(metrics.get('times_bucket{le="1"}')).toBe(1)
    expect(metrics.get('times_count')).toBe(2)
    expect(metrics.get('times_sum')).toBe(5.5)
    expect(metrics.get('running')).toBe(7)
    expect([metrics.get('oldest'), metrics.get('least')]).toEqual([2, 1])
    expect(metrics.get('sluice_workers_running')).toBe(2)
    expect(metrics.get('sluice_workers_unresponsive')).toBe(0)
  }
})

test('a gauge that all workers share has the value that the responding worker read last', async () => {
  const [one, two] = [startWorker(), startWorker()]
  const series = 'rows{of="jobs"}'
  one.rows.count = 5
  expect((await one.scrape()).get(series)).toBe(5)
  two.rows.count = 6
  expect((await two.scrape()).get(series)).toBe(6)
  one.rows.count = 7
  expect((await one.scrape()).get(series)).toBe(7)
  // There are none any more.
  two.rows.count = 0
  expect((await two.scrape()).has(series)).toBe(false)
})

test('totals of a killed worker stay, its gauges go', async () => {
  const [one, two] = [startWorker(), startWorker()]
  one.calls.add(1)
  two.calls.add(10)
  two.times.observe(0.5)
  two.running.count = 4
  expect((await one.scrape()).get('calls_total')).toBe(11)
  two.kill()
  const after = await one.scrape()
  expect([after.get('calls_total'), after.get('times_count')]).toEqual([11, 1])
  expect([after.get('running'), after.get('sluice_workers_running')]).toEqual([0, 1])
  const three = startWorker()
  three.calls.add(5)
  await pass(2 * pollMs)
  expect((await one.scrape()).get('calls_total')).toBe(16)
  three.kill()
  await pass(2 * pollMs)
  expect((await one.scrape()).get('calls_total')).toBe(16)
})

test('a killed worker loses at most what it counted since the last poll', async () => {
  const [one, two] = [startWorker(), startWorker()]
  two.calls.add(10)
  await pass(pollMs)
  two.calls.add(1)
  two.kill()
  expect((await one.scrape()).get('calls_total')).toBe(10)
})

test('a worker that ends reports its last totals, also if they arrive after its end', async () => {
  const [one, two] = [startWorker(), startWorker()]
  two.calls.add(10)
  two.report()
  two.kill()
  await settle()
  expect((await one.scrape()).get('calls_total')).toBe(10)
})

test('a stopped worker delays one scrape by the deadline at most; its last values are used', async () => {
  const [one, two] = [startWorker(), startWorker()]
  two.calls.add(10)
  expect((await one.scrape()).get('calls_total')).toBe(10)
  two.stop()
  const first = one.scrape()
  await pass(collectMsMax)
  const late = await first
  expect(late.get('calls_total')).toBe(10)
  expect(late.get('sluice_workers_unresponsive')).toBe(1)
  expect(late.get('sluice_metrics_snapshot_age_seconds')).toBe(collectMsMax / 1_000)
  // The next ones do not wait.
  for (let scrapes = 0; scrapes < 5; scrapes++) {
    expect((await one.scrape()).get('sluice_workers_unresponsive')).toBe(1)
    await pass(pollMs)
  }
  expect(two.unread()).toBe(1)
  two.calls.add(1)
  two.continue()
  await settle()
  const again = await one.scrape()
  expect(again.get('calls_total')).toBe(11)
  expect(again.get('sluice_workers_unresponsive')).toBe(0)
})

test('the supervisor itself responds from the workers that report', async () => {
  const [one, two] = [startWorker(), startWorker()]
  one.calls.add(1)
  two.calls.add(2)
  two.rows.count = 9
  const scrape = async () => readMetrics(await fleet.scrape('prometheus'))
  expect((await scrape()).get('calls_total')).toBe(3)
  one.stop()
  const first = scrape()
  await pass(collectMsMax)
  await first
  const metrics = await scrape()
  expect(metrics.get('calls_total')).toBe(3)
  expect(metrics.get('rows{of="jobs"}')).toBe(9)
  expect(metrics.get('sluice_workers_unresponsive')).toBe(1)
})

test('the sum of all workers has no more series than one worker may have', async () => {
  const registry = createMetricRegistry({ seriesMax: 2_000 })
  const definition = { type: 'counter', name: 'many_total', help: 'All.', labels: ['of'] } as const
  const counter = registry.counter({ ...definition, seriesMax: 2 })
  counter.add(1, 'a')
  counter.add(1, 'b')
  const other = createMetricRegistry({ seriesMax: 2_000 })
  const others = other.counter({ ...definition, seriesMax: 2 })
  others.add(5, 'c')
  others.add(7, 'd')
  for (const each of [registry, other]) {
    fleet.add(() => {}).received({ type: 'metrics', metrics: each.snapshot() })
  }
  const scraped = fleet.scrape('prometheus')
  await pass(collectMsMax)
  const metrics = readMetrics(await scraped)
  const many = [...metrics].filter(([series]) => series.startsWith('many_total'))
  expect(many).toEqual([
    ['many_total{of="a"}', 1],
    ['many_total{of="b"}', 1],
    ['many_total{of="other"}', 12],
  ])
})

test('scrapes of both formats at once are both answered', async () => {
  const [one, two] = [startWorker(), startWorker()]
  one.calls.add(1)
  two.calls.add(2)
  const [first, same, other] = await Promise.all([
    one.link.scrape('prometheus'),
    one.link.scrape('prometheus'),
    one.link.scrape('openmetrics'),
  ])
  expect(first).toContain('\ncalls_total 3\n')
  expect(same).toBe(first)
  expect(other).toContain('\ncalls_total 3\n')
  expect(other).toEndWith('# EOF\n')
})

test('without a reply of the supervisor a scrape fails, instead of showing one worker alone', async () => {
  const registry = createMetricRegistry({ seriesMax: 10 })
  const sent: MetricsReport[] = []
  let listen: (message: MetricsRequest) => void = () => {}
  const { scrape } = connectMetrics(registry, {
    send: (report) => void sent.push(report),
    onMessage: (listener) => {
      listen = listener
    },
  })
  const outcome = (scraped: Promise<string>) => scraped.then(String, (error) => error.kind)
  const first = outcome(scrape('prometheus'))
  await pass(10_000)
  expect(await first).toBe('service_unavailable')
  // A supervisor that does not read gets no second request.
  expect(await outcome(scrape('prometheus'))).toBe('service_unavailable')
  expect(sent).toHaveLength(1)
  listen({ type: 'scraped-metrics', id: 1, text: 'late' })
  const again = outcome(scrape('prometheus'))
  await settle()
  listen({ type: 'scraped-metrics', id: 2, text: 'in time' })
  expect(await again).toBe('in time')
})
