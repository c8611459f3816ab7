import { afterEach, expect, test } from 'bun:test'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'
import { readMetrics, sumOfMetric } from '#test/support/metrics-text.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Metrics of HTTP requests, of calls by the OpenTelemetry names, and of API keys. */

let gateway: Gateway | undefined
let upstream: Bun.Server<undefined> | undefined
afterEach(async () => {
  await gateway?.stop()
  await upstream?.stop(true)
})

async function start(options: GatewayOptions = {}): Promise<Gateway> {
  gateway = await startGateway(options)
  return gateway
}

async function scrape({ url }: Gateway) {
  return readMetrics(await (await fetch(`${url}/metrics`)).text())
}

const requestsOf = (metrics: ReadonlyMap<string, number>) =>
  [...metrics].filter(([series]) => series.startsWith('sluice_http_requests_total{'))

const counted = (method: string, route: string, status: number, count = 1) => [
  `sluice_http_requests_total{method="${method}",route="${route}",status="${status}"}`,
  count,
]

test('requests are counted by the template of their route and their status', async () => {
  const here = await start()
  expect((await here.request('/v1/models')).status).toBe(200)
  for (const id of ['resp_one', 'resp_two']) {
    expect((await here.request(`/v1/responses/${id}`)).status).toBe(404)
  }
  expect((await fetch(`${here.url}/v1/models`)).status).toBe(401)
  expect((await here.request('/v1/models?limit=1')).status).toBe(200)
  expect((await here.post('/v1/responses', '{')).status).toBe(400)
  const metrics = await scrape(here)
  expect(requestsOf(metrics).toSorted()).toEqual(
    [
      counted('GET', '/v1/models', 200, 2),
      counted('GET', '/v1/models', 401),
      counted('GET', '/v1/responses/:id', 404, 2),
      counted('POST', '/v1/responses', 400),
    ].toSorted() as [string, number][],
  )
  const durations = 'sluice_http_request_duration_seconds_count'
  expect(metrics.get(`${durations}{method="GET",route="/v1/models"}`)).toBe(3)
  expect(metrics.get(`${durations}{method="GET",route="/v1/responses/:id"}`)).toBe(2)
})

test('a scanner of paths and methods makes no series', async () => {
  const here = await start()
  for (let path = 0; path < 50; path++) {
    expect((await fetch(`${here.url}/wp-admin/${path}.php`)).status).toBe(404)
  }
  for (const method of ['PROPFIND', 'REPORT']) await fetch(`${here.url}/dav`, { method })
  const metrics = await scrape(here)
  expect(requestsOf(metrics)).toContainEqual(
    counted('GET', 'unmatched', 404, 50) as [string, number],
  )
  const routes = requestsOf(metrics).map(([series]) => /route="([^"]*)"/.exec(series)?.[1])
  expect(new Set(routes)).toEqual(new Set(['unmatched']))
  const methods = requestsOf(metrics).map(([series]) => /method="([^"]*)"/.exec(series)?.[1])
  expect(methods.every((method) => method === 'GET' || method === 'other')).toBe(true)
})

test('a WebSocket is counted with status 101', async () => {
  const here = await start()
  const socket = new WebSocket(
    `ws://127.0.0.1:${here.port}/v1/responses?token=${await here.token()}`,
  )
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  socket.close()
  expect(requestsOf(await scrape(here))).toEqual([
    counted('GET', '/v1/responses', 101) as [string, number],
  ])
})

/** Fails the first request, then streams or completes. */
function startUpstream(): string {
  let asked = 0
  upstream = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (request.url.endsWith('/models')) return Response.json({ object: 'list', data: [] })
      asked += 1
      if (asked === 1) return new Response('busy', { status: 503 })
      const usage = { prompt_tokens: 70, completion_tokens: 3, total_tokens: 73 }
      if (request.url.endsWith('/embeddings')) {
        const data = [{ object: 'embedding', index: 0, embedding: [1, 2] }]
        return Response.json({ object: 'list', data, model: 'theirs', usage })
      }
      if (!(await request.text()).includes('"stream":true')) {
        const message = { role: 'assistant', content: 'Hi' }
        return Response.json({ choices: [{ index: 0, finish_reason: 'stop', message }], usage })
      }
      return new Response(
        chatStream([chunk({ content: 'Hi' }), chunk({}, 'stop'), { choices: [], usage }]),
        { headers: { 'content-type': 'text/event-stream' } },
      )
    },
  })
  return `${upstream.url}v1`
}

const model = { name: 'mine', upstreams: ['one'], upstreamModel: 'theirs' }
const ofTarget = 'upstream="one",model="theirs"'

test('calls have the metrics of the OpenTelemetry conventions', async () => {
  const here = await start({ upstream: [{ name: 'one', url: startUpstream() }], model: [model] })
  const body = { model: 'mine', input: 'Hello', store: false }
  expect((await here.post('/v1/responses', body)).status).toBe(200)
  const streamed = await here.post('/v1/responses', { ...body, stream: true })
  expect(await streamed.text()).toContain('response.completed')
  const metrics = await scrape(here)
  const chat = `gen_ai_operation_name="chat",${ofTarget}`
  const client = 'gen_ai_client_operation_duration_seconds_count'
  // Three attempts, the first of which failed, are two calls.
  expect(metrics.get(`${client}{${chat},error_type=""}`)).toBe(2)
  expect(sumOfMetric(metrics, client)).toBe(3)
  const server = 'gen_ai_server_request_duration_seconds_count'
  expect(metrics.get(`${server}{${chat},error_type=""}`)).toBe(2)
  expect(sumOfMetric(metrics, server)).toBe(2)
  for (const [type, sum] of [
    ['input', 140],
    ['output', 6],
  ] as const) {
    const labels = `${chat},gen_ai_token_type="${type}"`
    expect(metrics.get(`gen_ai_client_token_usage_sum{${labels}}`)).toBe(sum)
    expect(metrics.get(`gen_ai_client_token_usage_count{${labels}}`)).toBe(2)
  }
  // Only the streamed one has a first token, and a time per token.
  for (const name of ['time_to_first_token', 'time_per_output_token']) {
    expect(metrics.get(`gen_ai_server_${name}_seconds_count{${ofTarget}}`)).toBe(1)
  }
  // The bounds of the conventions.
  const boundsOf = (name: string) =>
    [...metrics.keys()].flatMap((series) => {
      const [, bound] = new RegExp(`^${name}_bucket\\{.*le="([^"]+)"\\}$`).exec(series) ?? []
      return bound === undefined || series.includes('"output"') ? [] : [bound]
    })
  for (const name of ['client_token_usage', 'server_time_to_first_token_seconds']) {
    const bounds = boundsOf(`gen_ai_${name}`).slice(0, -1).map(Number)
    expect(bounds).toEqual(bounds.toSorted((a, b) => a - b))
  }
  expect(boundsOf('gen_ai_client_token_usage').slice(0, 4)).toEqual(['1', '4', '16', '64'])
  expect(boundsOf('gen_ai_server_time_to_first_token_seconds')).toHaveLength(17)
  expect(boundsOf('gen_ai_server_time_per_output_token_seconds')).toHaveLength(14)
})

test('embeddings are an operation of their own, and no generation', async () => {
  const here = await start({
    upstream: [{ name: 'one', url: startUpstream() }],
    model: [{ ...model, mode: 'embed' }],
  })
  expect((await here.post('/v1/embeddings', { model: 'mine', input: 'a' })).status).toBe(200)
  const metrics = await scrape(here)
  const labels = `gen_ai_operation_name="embeddings",${ofTarget}`
  const server = 'gen_ai_server_request_duration_seconds_count'
  expect(metrics.get(`${server}{${labels},error_type=""}`)).toBe(1)
  expect(metrics.get(`gen_ai_client_token_usage_sum{${labels},gen_ai_token_type="input"}`)).toBe(70)
  expect(sumOfMetric(metrics, 'sluice_generations_total')).toBe(0)
})

test('API keys are a label only if the configuration says so, up to a limit', async () => {
  const silent = await start()
  expect((await silent.post('/v1/responses', { model: 'demo-fast', input: 'a' })).status).toBe(200)
  expect([...(await scrape(silent)).keys()].filter((one) => one.includes('key_id'))).toEqual([])
  await silent.stop()

  const here = await start({ metrics: { keyLabels: true, keySeriesMax: 2 } })
  const ids: string[] = []
  for (const name of ['one', 'two', 'three']) {
    const { id, key } = Object(await (await here.post('/v1/api-keys', { name })).json())
    ids.push(id)
    const headers = { 'x-api-key': key, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'demo-fast', input: 'a', store: false })
    const response = await here.request('/v1/responses', { method: 'POST', headers, body })
    expect(response.status).toBe(200)
  }
  const series = [...(await scrape(here))].filter(([one]) => one.startsWith('sluice_key_calls'))
  expect(series).toEqual([
    [`sluice_key_calls_total{key_id="${ids[0]}",outcome="completed"}`, 1],
    [`sluice_key_calls_total{key_id="${ids[1]}",outcome="completed"}`, 1],
    ['sluice_key_calls_total{key_id="other",outcome="other"}', 1],
  ])
})
