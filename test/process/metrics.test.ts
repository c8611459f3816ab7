import { afterEach, expect, test } from 'bun:test'
import { serverUrl } from '#test/support/database.ts'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { type HeldUpstream, startHeldUpstream } from '#test/support/held-upstream.ts'
import { readMetrics, sumOfMetric } from '#test/support/metrics-text.ts'
import {
  childrenOf,
  type GatewayProcess,
  killProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { openConnections, type ServedConnection } from '#test/support/served-connection.ts'
import type { TrafficRecord } from '#traffic/record.ts'

/** Metrics of real workers and their supervisor. */

let upstream: HeldUpstream | undefined
afterEach(async () => {
  await stopProcesses()
  await upstream?.stop()
  upstream = undefined
})

type Scraped = ReadonlyMap<string, number>

/** On the port of the supervisor. */
async function scrape(gateway: GatewayProcess): Promise<Scraped> {
  const line = await gateway.logged('serving metrics')
  const response = await fetch(`http://127.0.0.1:${line['port']}/metrics`)
  expect(response.status).toBe(200)
  return readMetrics(await response.text())
}

/** On the port of the API, from the worker of this connection. */
async function scrapeWorker(connection: ServedConnection): Promise<Scraped> {
  const { status, body } = await connection.exchange('GET', '/metrics', {})
  expect(status).toBe(200)
  return readMetrics(body)
}

const totals = (metrics: Scraped) => ({
  generations: sumOfMetric(metrics, 'sluice_generations_total'),
  requests: metrics.get(
    'sluice_http_requests_total{method="POST",route="/v1/responses",status="200"}',
  ),
  durations: sumOfMetric(metrics, 'gen_ai_server_request_duration_seconds_count'),
})

async function generate(connection: ServedConnection, times: number): Promise<void> {
  const token = { authorization: `Bearer ${await signToken()}` }
  const body = JSON.stringify({ model: 'demo-fast', input: 'hi', store: false })
  for (let request = 0; request < times; request++) {
    expect((await connection.exchange('POST', '/v1/responses', token, body)).status).toBe(200)
  }
}

/** One long stream on each connection. */
async function startStreams(connections: readonly ServedConnection[]): Promise<void> {
  const token = { authorization: `Bearer ${await signToken()}` }
  const body = JSON.stringify({ model: 'demo-long', input: 'hi', store: false, stream: true })
  for (const connection of connections) void connection.readToEnd('/v1/responses', token, body)
}

async function readTraffic(connection: ServedConnection): Promise<TrafficRecord> {
  const token = { authorization: `Bearer ${await signToken(['admins'])}` }
  const { status, body } = await connection.exchange('GET', '/v1/traffic', token)
  expect(status).toBe(200)
  return JSON.parse(body)
}

/** Series that fell or vanished although they only count. */
function fallen(before: Scraped, after: Scraped): string[] {
  const counts = /^\w+_(total|count|bucket|sum)(\{|$)/
  return [...before].flatMap(([series, value]) =>
    counts.test(series) && !((after.get(series) ?? -1) >= value)
      ? [`${series}: ${value} → ${after.get(series)}`]
      : [],
  )
}

test.skipIf(serverUrl === undefined)(
  'counters of two workers are one sum, which does not fall when one is killed and restarted',
  async () => {
    const environment = { SLUICE_WORKERS: '2', SLUICE_METRICS_PORT: '0' }
    const gateway = await startGatewayProcess({ environment })
    await gateway.logged('listening', 2)
    const [left, right] = await openConnections(gateway.port(), childrenOf(gateway.pid))
    await generate(left, 3)
    await generate(right, 4)
    const sums = { generations: 7, requests: 7, durations: 7 }
    for (const connection of [left, right]) {
      const metrics = await scrapeWorker(connection)
      expect(totals(metrics)).toEqual(sums)
      expect(metrics.get('sluice_workers_running')).toBe(2)
      expect([...metrics.keys()].filter((series) => /\b(worker|pid)="/.test(series))).toEqual([])
    }
    const before = await scrape(gateway)
    expect(totals(before)).toEqual(sums)

    killProcess(right.workerPid)
    await gateway.logged('worker exited, restarting')
    const during = await scrapeWorker(left)
    expect(totals(during)).toEqual(sums)
    expect(during.get('sluice_workers_running')).toBe(1)
    expect(fallen(before, during)).toEqual([])

    await gateway.logged('listening', 3)
    const after = childrenOf(gateway.pid)
    const [one, other] = await openConnections(gateway.port(), after)
    await generate(one.workerPid === left.workerPid ? other : one, 5)
    const last = await scrape(gateway)
    expect(totals(last)).toEqual({ generations: 12, requests: 12, durations: 12 })
    expect(last.get('sluice_worker_restarts_total')).toBe(1)
    expect(fallen(during, last)).toEqual([])
  },
)

test.skipIf(serverUrl === undefined)(
  'a stopped worker stops neither the scrape, which has its last values, nor the traffic, which misses it',
  async () => {
    const environment = { SLUICE_WORKERS: '2', SLUICE_METRICS_PORT: '0' }
    const gateway = await startGatewayProcess({ environment })
    await gateway.logged('listening', 2)
    const [left, right] = await openConnections(gateway.port(), childrenOf(gateway.pid))
    await generate(right, 4)
    expect(totals(await scrape(gateway)).generations).toBe(4)
    const streams = await openConnections(gateway.port(), childrenOf(gateway.pid))
    await startStreams(streams)
    await eventually('both streams run', async () => {
      return (await readTraffic(left)).phases.streaming === 2
    })
    for (const connection of [left, right]) {
      const { workers, calls, upstreams } = await readTraffic(connection)
      expect(workers).toEqual({ reporting: 2, missing: 0 })
      const pids = calls.map(({ worker }) => Number(worker))
      expect(pids.toSorted()).toEqual([left.workerPid, right.workerPid].toSorted())
      expect(calls[0]).toMatchObject({ model: 'demo-long', phase: 'streaming', upstream: 'demo' })
      expect(upstreams.find(({ name }) => name === 'demo')?.in_flight).toBe(2)
    }

    killProcess(right.workerPid, 'SIGSTOP')
    const { workers, running } = await readTraffic(left)
    expect(workers).toEqual({ reporting: 1, missing: 1 })
    expect(running).toBe(1)
    await generate(left, 1)
    for (const stopped of [await scrape(gateway), await scrapeWorker(left)]) {
      expect(totals(stopped).generations).toBe(5)
      expect(stopped.get('sluice_workers_unresponsive')).toBe(1)
      expect(stopped.get('sluice_workers_running')).toBe(2)
      expect(stopped.get('sluice_database_up')).toBe(1)
    }
    killProcess(right.workerPid, 'SIGCONT')
    await eventually('the worker reports again', async () => {
      return (await scrape(gateway)).get('sluice_workers_unresponsive') === 0
    })
    expect(totals(await scrape(gateway)).generations).toBe(5)
  },
)

test('metrics are served while the gateway drains, as OpenMetrics too', async () => {
  upstream = await startHeldUpstream()
  const environment = { SLUICE_CONFIG: upstream.configFile, SLUICE_METRICS_PORT: '0' }
  const gateway = await startGatewayProcess({ environment })
  const stream = await gateway.ask({ model: 'held', input: 'hello', stream: true })
  const events = readEvents(stream)
  await events.until(/output_text\.delta/)
  gateway.signal('SIGTERM')
  await gateway.logged('stopping')
  const metrics = await scrape(gateway)
  expect(metrics.get('sluice_generations_running')).toBe(1)
  expect(metrics.get('sluice_draining')).toBe(1)
  const { port } = await gateway.logged('serving metrics')
  const url = `http://127.0.0.1:${port}`
  const ready = await fetch(`${url}/readyz`)
  expect([ready.status, await ready.json()]).toEqual([503, { status: 'draining' }])
  expect((await fetch(`${url}/livez`)).status).toBe(200)
  const headers = { accept: 'application/openmetrics-text;version=1.0.0' }
  const open = await fetch(`${url}/metrics`, { headers })
  expect(open.headers.get('content-type')).toStartWith('application/openmetrics-text')
  expect(await open.text()).toEndWith('\n# EOF\n')
  expect((await fetch(`${url}/v1/models`)).status).toBe(404)
  expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405)
  upstream.release()
  expect(await events.whole()).toEndWith('data: [DONE]\n\n')
  expect(await gateway.exited).toBe(0)
})

test('the port of the supervisor asks for the token', async () => {
  const environment = { SLUICE_METRICS_PORT: '0', SLUICE_METRICS_TOKEN: 'scrape-me' }
  const gateway = await startGatewayProcess({ environment })
  const { port } = await gateway.logged('serving metrics')
  const status = async (authorization: string) =>
    (await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { authorization } })).status
  expect(await status('Bearer wrong')).toBe(401)
  expect(await status('Bearer scrape-me')).toBe(200)
})
