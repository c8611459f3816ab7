import { expect, test } from 'bun:test'
import { createMetricRegistry } from '#telemetry/metrics.ts'

function registry(seriesMax = 10) {
  return createMetricRegistry({ seriesMax, labels: { worker: '1' } })
}

async function linesOf(metrics: ReturnType<typeof registry>): Promise<string[]> {
  const text = await metrics.render()
  expect(text.endsWith('\n')).toBe(true)
  return text.trimEnd().split('\n')
}

test('a counter adds up per label set', async () => {
  const metrics = registry()
  const requests = metrics.counter({ name: 'requests_total', help: 'All.', labels: ['by', 'how'] })
  requests.add(1, 'ann', 'get')
  requests.add(2, 'ann', 'get')
  requests.add(1, 'ann', 'put')
  expect(await linesOf(metrics)).toEqual([
    '# HELP requests_total All.',
    '# TYPE requests_total counter',
    'requests_total{by="ann",how="get",worker="1"} 3',
    'requests_total{by="ann",how="put",worker="1"} 1',
  ])
})

test('a histogram counts values up to each bound, and all values under +Inf', async () => {
  const metrics = registry()
  const seconds = metrics.histogram({ name: 'seconds', help: 'Time.', bounds: [0.1, 1] })
  for (const value of [0.1, 0.5, 7]) seconds.observe(value)
  expect(await linesOf(metrics)).toEqual([
    '# HELP seconds Time.',
    '# TYPE seconds histogram',
    'seconds_bucket{le="0.1",worker="1"} 1',
    'seconds_bucket{le="1",worker="1"} 2',
    'seconds_bucket{le="+Inf",worker="1"} 3',
    'seconds_sum{worker="1"} 7.6',
    'seconds_count{worker="1"} 3',
  ])
})

test('a gauge is read at each rendering, and a failing gauge affects no other', async () => {
  const metrics = registry()
  let now = 1
  metrics.gauge({ name: 'now', help: 'Now.' }, () => now)
  metrics.gauge({ name: 'lost', help: 'Lost.' }, () => Promise.reject(new Error('away')))
  metrics.gauge({ name: 'many', help: 'Many.', labels: ['of'] }, async () => [[2, 'a']])
  expect(await linesOf(metrics)).toContain('now{worker="1"} 1')
  now = 5
  const lines = await linesOf(metrics)
  expect(lines).toContain('now{worker="1"} 5')
  expect(lines).toContain('many{of="a",worker="1"} 2')
  expect(lines.filter((line) => line.startsWith('lost'))).toEqual([])
})

test('label values are escaped', async () => {
  const metrics = registry()
  const counter = metrics.counter({ name: 'odd', help: 'a\\b\nc', labels: ['name'] })
  counter.add(1, 'quote " slash \\ line\nend')
  expect(await linesOf(metrics)).toEqual([
    '# HELP odd a\\\\b\\nc',
    '# TYPE odd counter',
    'odd{name="quote \\" slash \\\\ line\\nend",worker="1"} 1',
  ])
})

test('beyond its series limit a metric sums the rest up', async () => {
  const metrics = registry(2)
  const counter = metrics.counter({ name: 'many', help: 'Many.', labels: ['a', 'b'] })
  for (const name of ['one', 'two', 'three', 'four', 'one']) counter.add(1, name, 'x')
  expect((await linesOf(metrics)).slice(2)).toEqual([
    'many{a="one",b="x",worker="1"} 2',
    'many{a="two",b="x",worker="1"} 1',
    'many{a="other",b="other",worker="1"} 2',
  ])
})
