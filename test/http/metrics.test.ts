import { afterEach, expect, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import { sql } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { mountEndpoints } from '#api/mount.ts'
import { requestLifecycle } from '#http/request-lifecycle.ts'
import { operationsEndpoints } from '#operations/endpoints.ts'
import { publicOnly } from '#test/support/endpoints.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'
import { quietObserver } from '#test/support/quiet-log.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Metrics, as a scraper reads them. */

const gateways: Gateway[] = []
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.stop()
})

async function start(options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = await startGateway(options)
  gateways.push(gateway)
  return gateway
}

/** By the name of the metric with its labels. */
async function metricsOf(gateway: Gateway): Promise<Map<string, number>> {
  const answer = await fetch(`${gateway.url}/metrics`)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const lines = (await answer.text()).split('\n').filter((line) => /^[a-z]/.test(line))
  return new Map(
    lines.map((line) => {
      const [, series = '', value] = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line) ?? []
      return [series, Number(value)] as const
    }),
  )
}

test('generations are counted by upstream, model and outcome', async () => {
  let asked = 0
  using upstream = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      if (url.endsWith('/models')) return Response.json({ object: 'list', data: [] })
      asked += 1
      if (asked === 1) return new Response('busy', { status: 503 })
      const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
      return new Response(
        chatStream([chunk({ content: 'Hi' }), chunk({}, 'stop'), { choices: [], usage }]),
        { headers: { 'content-type': 'text/event-stream' } },
      )
    },
  })
  const gateway = await start({
    upstream: [{ name: 'one', url: `${upstream.url}v1` }],
    model: [{ name: 'mine', upstreams: ['one'], upstreamModel: 'theirs', aliases: ['also'] }],
  })
  for (const model of ['mine', 'also']) {
    expect((await gateway.post('/v1/responses', { model, input: 'Hello' })).status).toBe(200)
  }
  const metrics = await metricsOf(gateway)
  const of = 'upstream="one",model="theirs"'
  expect(metrics.get(`sluice_generations_total{${of},outcome="completed"}`)).toBe(2)
  expect(metrics.get(`sluice_tokens_total{${of},kind="input"}`)).toBe(14)
  expect(metrics.get(`sluice_tokens_total{${of},kind="output"}`)).toBe(6)
  expect(metrics.get(`sluice_generation_duration_seconds_count{${of}}`)).toBe(2)
  expect(metrics.get(`sluice_first_event_seconds_bucket{${of},le="+Inf"}`)).toBe(2)
  expect(metrics.get('sluice_upstream_retries_total{upstream="one"}')).toBe(1)
  expect(metrics.get('sluice_upstream_requests_total{upstream="one",answer="5xx"}')).toBe(1)
  expect(metrics.get('sluice_upstream_requests_total{upstream="one",answer="2xx"}')).toBe(3)
  expect([...metrics.keys()].filter((name) => name.includes('also'))).toEqual([])
})

test('an unreachable upstream is counted as no response, and the generation as failed', async () => {
  const gateway = await start({
    upstream: [{ name: 'away', url: 'http://127.0.0.1:1/v1', models: ['lost'] }],
    retry: { retriesMax: 0 },
  })
  const answer = await gateway.post('/v1/responses', { model: 'lost', input: 'Hello' })
  expect(answer.status).toBe(502)
  const metrics = await metricsOf(gateway)
  expect(
    metrics.get('sluice_generations_total{upstream="away",model="lost",outcome="failed"}'),
  ).toBe(1)
  expect(metrics.get('sluice_upstream_requests_total{upstream="away",answer="none"}')).toBe(1)
})

test('running and queued work and process state are exported', async () => {
  const gateway = await start()
  const socket = new WebSocket(
    `ws://127.0.0.1:${gateway.port}/v1/responses?token=${await gateway.token()}`,
  )
  const metric = async (name: string) => (await metricsOf(gateway)).get(name)
  await eventually('the socket is counted', async () => {
    return (await metric('sluice_websockets_open')) === 1
  })
  const metrics = await metricsOf(gateway)
  expect(metrics.get('sluice_generations_running')).toBe(0)
  expect(metrics.get('sluice_speech_sessions')).toBe(0)
  expect(metrics.get('sluice_speech_queued_bytes')).toBe(0)
  expect(metrics.get('sluice_database_up')).toBe(1)
  expect(metrics.get('process_resident_memory_bytes')).toBeGreaterThan(1_000_000)
  expect(metrics.get('process_cpu_seconds_total')).toBeGreaterThan(0)
  await eventually('the lag is looked at', async () => {
    return ((await metric('sluice_event_loop_lag_seconds_count')) ?? 0) > 0
  })
  socket.close()
  await eventually('the socket is counted no more', async () => {
    return (await metric('sluice_websockets_open')) === 0
  })
})

test('failed authentications are counted by reason', async () => {
  const gateway = await start()
  const ask = (headers: Record<string, string>) => fetch(`${gateway.url}/v1/models`, { headers })
  await ask({})
  await ask({ authorization: 'Bearer a.b.c' })
  await ask({ 'x-api-key': 'sk-svc-v1-nonsense' })
  const metrics = await metricsOf(gateway)
  for (const reason of ['missing_credentials', 'invalid_token', 'invalid_api_key']) {
    expect(metrics.get(`sluice_auth_failures_total{reason="${reason}"}`)).toBe(1)
  }
})

test('queued jobs are counted by state', async () => {
  const gateway = await start()
  const { drizzle } = gateway.deps.database
  const claim = crypto.randomUUID()
  for (const [lockedBy, lastError] of [
    [null, null],
    [null, null],
    [claim, 'it failed before'],
    [null, 'it failed'],
  ]) {
    await drizzle.execute(sql`
      insert into job (id, queue, payload, run_at, created_at, locked_by, last_error)
      values (${crypto.randomUUID()}, 'nobody', '{}', now(), now(), ${lockedBy}, ${lastError})`)
  }
  const metrics = await metricsOf(gateway)
  const counted = ['waiting', 'running', 'failed'].map((state) =>
    metrics.get(`sluice_jobs{queue="nobody",state="${state}"}`),
  )
  expect(counted).toEqual([2, 1, 1])
})

test('an unreachable database is reported, and other metrics still work', async () => {
  const gateway = await start()
  const wasUp = (await metricsOf(gateway)).get('sluice_database_up')
  await gateway.deps.database.close()
  const metrics = await metricsOf(gateway)
  expect([wasUp, metrics.get('sluice_database_up')]).toEqual([1, 0])
  expect(metrics.get('sluice_generations_running')).toBe(0)
})

test('without a token, metrics are for this machine only, and a local proxy counts as its client', async () => {
  const gateway = await start()
  for (const header of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip']) {
    const answer = await fetch(`${gateway.url}/metrics`, { headers: { [header]: '203.0.113.9' } })
    expect(answer.status).toBe(403)
  }
  expect((await fetch(`${gateway.url}/metrics`)).status).toBe(200)
})

test('with a token, metrics require it', async () => {
  const gateway = await start({ environment: { SLUICE_METRICS_TOKEN: 'scrape-me' } })
  const ask = async (authorization?: string, more: Record<string, string> = {}) => {
    const headers = { ...(authorization === undefined ? {} : { authorization }), ...more }
    return (await fetch(`${gateway.url}/metrics`, { headers })).status
  }
  expect(await ask()).toBe(401)
  expect(await ask('Bearer scrape-m')).toBe(401)
  expect(await ask(`Bearer ${await gateway.token()}`)).toBe(401)
  expect(await ask('Bearer scrape-me', { 'x-forwarded-for': '203.0.113.9' })).toBe(200)
})

const outside = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address

test.if(outside !== undefined)('a remote client without a token is refused', async () => {
  const app = new Elysia()
    .use(
      requestLifecycle({
        observer: quietObserver,
        newRequestId: () => 'req_1',
        draining: () => false,
      }),
    )
    .use(
      mountEndpoints(
        operationsEndpoints({
          config: { metrics: {} },
          scrapeMetrics: async () => '',
          draining: () => false,
        }),
        publicOnly,
      ),
    )
    .listen({ hostname: '0.0.0.0', port: 0 })
  const ask = async (host: string) =>
    (await fetch(`http://${host}:${app.server?.port}/metrics`)).status
  expect([await ask('127.0.0.1'), await ask(outside ?? '')]).toEqual([200, 403])
  await app.stop(true)
})
