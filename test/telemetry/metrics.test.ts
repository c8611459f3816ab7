import { expect, test } from 'bun:test'
import { createMetricRegistry, type MetricRegistry } from '#telemetry/metrics.ts'
import { formatOf, type MetricsFormat, renderMetrics } from '#telemetry/metrics-text.ts'

const registry = (seriesMax = 10) => createMetricRegistry({ seriesMax })

/** Without those of the registry itself. */
async function linesOf(
  metrics: MetricRegistry,
  format: MetricsFormat = 'prometheus',
): Promise<string[]> {
  const text = renderMetrics(await metrics.snapshotWithShared(), format)
  expect(text.endsWith('\n')).toBe(true)
  const lines = text.trimEnd().split('\n')
  return lines.filter((line) => !line.includes('sluice_metrics_overflow'))
}

const requests = {
  type: 'counter',
  name: 'requests_total',
  help: 'All.',
  labels: ['by', 'how'],
} as const
const seconds = {
  type: 'histogram',
  name: 'wait_seconds',
  help: 'Time.',
  bounds: [0.1, 1],
} as const
const gauge = (name: string, labels: readonly string[] = []) =>
  ({ type: 'gauge', across: 'sum', name, help: 'Now.', labels }) as const

test('a counter adds up per label set', async () => {
  const metrics = registry()
  const counter = metrics.counter(requests)
  counter.add(1, 'ann', 'get')
  counter.add(2, 'ann', 'get')
  counter.add(1, 'ann', 'put')
  expect(await linesOf(metrics)).toEqual([
    '# HELP requests_total All.',
    '# TYPE requests_total counter',
    'requests_total{by="ann",how="get"} 3',
    'requests_total{by="ann",how="put"} 1',
  ])
})

test('a histogram counts values up to each bound, and all values under +Inf', async () => {
  const metrics = registry()
  const histogram = metrics.histogram(seconds)
  for (const value of [0.1, 0.5, 7]) histogram.observe(value)
  expect(await linesOf(metrics)).toEqual([
    '# HELP wait_seconds Time.',
    '# TYPE wait_seconds histogram',
    'wait_seconds_bucket{le="0.1"} 1',
    'wait_seconds_bucket{le="1"} 2',
    'wait_seconds_bucket{le="+Inf"} 3',
    'wait_seconds_sum 7.6',
    'wait_seconds_count 3',
  ])
})

test('OpenMetrics names families without suffix, their units, and the end', async () => {
  const metrics = registry()
  metrics.counter(requests).add(1, 'ann', 'get')
  metrics.histogram(seconds).observe(2)
  expect(await linesOf(metrics, 'openmetrics')).toEqual([
    '# TYPE requests counter',
    '# HELP requests All.',
    'requests_total{by="ann",how="get"} 1',
    '# TYPE wait_seconds histogram',
    '# UNIT wait_seconds seconds',
    '# HELP wait_seconds Time.',
    'wait_seconds_bucket{le="0.1"} 0',
    'wait_seconds_bucket{le="1.0"} 0',
    'wait_seconds_bucket{le="+Inf"} 1',
    'wait_seconds_sum 2',
    'wait_seconds_count 1',
    '# EOF',
  ])
})

test.each([
  [null, 'prometheus'],
  ['*/*', 'prometheus'],
  ['text/plain;version=0.0.4', 'prometheus'],
  ['application/openmetrics-text;version=1.0.0;q=0', 'prometheus'],
  [
    'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3',
    'openmetrics',
  ],
] as const)('the format for Accept %p is %s', (accept, format) => {
  expect(formatOf(accept)).toBe(format)
})

test('metrics without labels exist before their first value', async () => {
  const metrics = registry()
  metrics.counter({ type: 'counter', name: 'errors_total', help: 'None yet.' })
  metrics.histogram(seconds)
  expect(await linesOf(metrics)).toContain('errors_total 0')
  expect(await linesOf(metrics)).toContain('wait_seconds_count 0')
})

test('a gauge is read for each snapshot, and a failing gauge affects no other', async () => {
  const metrics = registry()
  let now = 1
  metrics.gauge(gauge('now'), () => now)
  metrics.gauge(gauge('lost'), () => {
    throw new Error('away')
  })
  metrics.sharedGauge(gauge('gone'), () => Promise.reject(new Error('away')))
  metrics.sharedGauge(gauge('many', ['of']), async () => [[2, 'a']])
  expect(await linesOf(metrics)).toContain('now 1')
  now = 5
  const lines = await linesOf(metrics)
  expect(lines).toContain('now 5')
  expect(lines).toContain('many{of="a"} 2')
  expect(lines.filter((line) => /^(lost|gone)/.test(line))).toEqual([])
})

test('a shared gauge is read only for a scrape that the process responds to', () => {
  const metrics = registry()
  let reads = 0
  metrics.sharedGauge(gauge('rows'), async () => ++reads)
  expect(metrics.snapshot().map(({ definition }) => definition.name)).not.toContain('rows')
  expect(reads).toBe(0)
})

test('a counter that is kept elsewhere neither falls nor vanishes', async () => {
  const metrics = registry()
  const definition = { type: 'counter', name: 'tries_total', help: 'All.', labels: ['at'] } as const
  let tries: [number, string][] = [[3, 'one']]
  metrics.observeCounter(definition, () => tries)
  const values = async () => (await linesOf(metrics)).filter((line) => !line.startsWith('#'))
  expect(await values()).toEqual(['tries_total{at="one"} 3'])
  // The object that counted was replaced.
  tries = [[1, 'one']]
  expect(await values()).toEqual(['tries_total{at="one"} 4'])
  tries = [[2, 'one']]
  expect(await values()).toEqual(['tries_total{at="one"} 5'])
  tries = []
  expect(await values()).toEqual(['tries_total{at="one"} 5'])
})

test('label values are escaped', async () => {
  const metrics = registry()
  const definition = {
    type: 'counter',
    name: 'odd_total',
    help: 'a\\b\nc',
    labels: ['name'],
  } as const
  metrics.counter(definition).add(1, 'quote " slash \\ line\nend')
  expect(await linesOf(metrics)).toEqual([
    '# HELP odd_total a\\\\b\\nc',
    '# TYPE odd_total counter',
    'odd_total{name="quote \\" slash \\\\ line\\nend"} 1',
  ])
})

test('beyond its series limit a metric sums the rest up, and counts that', async () => {
  const metrics = registry(2)
  const counter = metrics.counter(requests)
  for (const name of ['one', 'two', 'three', 'four', 'one']) counter.add(1, name, 'x')
  expect((await linesOf(metrics)).slice(2)).toEqual([
    'requests_total{by="one",how="x"} 2',
    'requests_total{by="two",how="x"} 1',
    'requests_total{by="other",how="other"} 2',
  ])
  const text = renderMetrics(metrics.snapshot(), 'prometheus')
  expect(text).toContain('sluice_metrics_overflow_total{metric="requests_total"} 2\n')
})

test('a metric may have a limit of its own', async () => {
  const metrics = registry(10)
  const counter = metrics.counter({ ...requests, seriesMax: 1 })
  for (const name of ['one', 'two']) counter.add(1, name, 'x')
  expect((await linesOf(metrics)).slice(2)).toEqual([
    'requests_total{by="one",how="x"} 1',
    'requests_total{by="other",how="other"} 1',
  ])
})
