import { afterEach, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { startOtlpReceiver } from '#test/support/otlp-receiver.ts'
import { openSpeech } from '#test/support/speech-client.ts'
import { startMcpGateway } from '#test/surfaces/responses/mcp-gateway.ts'
import {
  ask,
  cleanUpAll,
  cleanups,
  clientSpan,
  sampled,
  start,
  traceId,
  upstreamOf,
  whole,
} from './traced-gateway.ts'

afterEach(cleanUpAll)

const message = { messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 50 }
const surfaces = [
  { path: '/v1/responses', body: { input: 'Hi.' } },
  { path: '/v1/responses', body: { input: 'Hi.', stream: true } },
  { path: '/v1/responses', body: { input: 'Hi.', stream: true, store: false } },
  { path: '/compat/v1/messages', body: message },
  { path: '/compat/v1/messages', body: { ...message, stream: true } },
]

test.each(surfaces)('a request to $path is one tree of spans: $body', async ({ path, body }) => {
  const { gateway, receiver } = await start()
  const begunAtMs = performance.now()
  await ask(gateway, path, body, sampled)
  const [request, generation, attempt] = await receiver.named(
    `POST ${path}`,
    'chat demo-fast',
    'attempt demo',
  )
  expect(receiver.spans.map((span) => span.traceId)).toEqual([traceId, traceId, traceId])
  expect(request?.parentSpanId).toBe(clientSpan)
  expect(generation?.parentSpanId).toBe(request?.spanId)
  expect(attempt?.parentSpanId).toBe(generation?.spanId)
  expect([request?.kind, generation?.kind, attempt?.kind]).toEqual([2, 1, 3])
  expect(request?.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.route': path,
    'http.response.status_code': 200,
    'sluice.outcome': 'completed',
  })
  expect(generation?.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'sluice.demo',
    'gen_ai.request.model': 'demo-fast',
    'gen_ai.response.model': 'demo-fast',
    'gen_ai.usage.input_tokens': expect.any(Number),
    'gen_ai.usage.output_tokens': expect.any(Number),
  })
  // In seconds.
  const elapsedS = (performance.now() - begunAtMs) / 1_000
  expect(generation?.attributes['gen_ai.response.time_to_first_chunk']).toBeWithin(0, elapsedS)
  // The log line has the same trace.
  const line = gateway.logLines.find((each) => each.includes('"request ended"')) ?? '{}'
  expect(JSON.parse(line).trace_id).toBe(traceId)
})

test('a retry elsewhere is an attempt of its own, and each upstream sees its attempt', async () => {
  const broken = await upstreamOf({ status: 500, body: '{}' })
  const good = await upstreamOf(whole)
  const { gateway, receiver } = await start(
    {},
    {
      upstream: [
        { name: 'broken', url: broken.baseUrl },
        { name: 'good', url: good.baseUrl },
      ],
      model: [{ name: 'm', upstreams: ['broken', 'good'] }],
    },
  )
  const text = await ask(
    gateway,
    '/v1/responses',
    { model: 'm', input: 'Hi.', store: false },
    sampled,
  )
  expect(text).toContain('Yes.')
  const [generation, first, second] = await receiver.named(
    'chat m',
    'attempt broken',
    'attempt good',
  )
  expect(first?.parentSpanId).toBe(String(generation?.spanId))
  expect(second?.parentSpanId).toBe(String(generation?.spanId))
  expect(first?.attributes).toMatchObject({
    'error.type': 'upstream_error',
    'http.response.status_code': 500,
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(broken.baseUrl).port),
  })
  expect([first?.statusCode, second?.statusCode, generation?.statusCode]).toEqual([2, 0, 0])
  const seen = [broken, good].map(
    ({ requests }) => requests.find(({ method }) => method === 'POST')?.headers,
  )
  expect(seen.map((headers) => headers?.['traceparent'])).toEqual([
    `00-${traceId}-${first?.spanId}-01`,
    `00-${traceId}-${second?.spanId}-01`,
  ])
  expect(seen.map((headers) => headers?.['tracestate'])).toEqual(['vendor=1', 'vendor=1'])
  const requestId = JSON.parse(
    gateway.logLines.findLast((line) => line.includes('request ended')) ?? '{}',
  ).request_id
  // Servers may refuse an id that they still serve.
  expect(seen.map((headers) => headers?.['x-request-id'])).toEqual([requestId, `${requestId}-2`])
})

test('the turns and the tools of one response are siblings in its trace', async () => {
  const receiver = startOtlpReceiver()
  cleanups.push(receiver.stop)
  const { gateway, stop } = await startMcpGateway({ environment: receiver.environment })
  cleanups.push(stop)
  const tools = [
    {
      type: 'mcp',
      server_label: 'docs',
      require_approval: 'never',
      allowed_tools: ['get_weather'],
    },
  ]
  await ask(gateway, '/v1/responses', { model: 'demo-tools', input: 'Hi.', tools }, sampled)
  const [request, tool] = await receiver.named('POST /v1/responses', 'execute_tool get_weather')
  expect(tool).toMatchObject({ traceId, parentSpanId: request?.spanId })
  expect(tool?.attributes).toMatchObject({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'get_weather',
    'sluice.mcp.server': 'docs',
  })
  const turns = receiver.spans.filter(({ name }) => name === 'chat demo-tools')
  expect(turns.length).toBeGreaterThan(1)
  expect(new Set(turns.map(({ parentSpanId }) => parentSpanId))).toEqual(
    new Set([String(request?.spanId)]),
  )
})

test('a background response and its job stay in the trace of the request', async () => {
  const { gateway, receiver } = await start()
  await ask(gateway, '/v1/responses', { input: 'Hi.', background: true }, sampled)
  const [request, job, generation] = await receiver.named(
    'POST /v1/responses',
    'job response',
    'chat demo-fast',
  )
  expect(job).toMatchObject({ traceId, parentSpanId: request?.spanId, kind: 5 })
  expect(generation).toMatchObject({ traceId, parentSpanId: job?.spanId })
})

test('a speech session is a span under its connection', async () => {
  const { gateway, receiver } = await start({}, { engine: [{ kind: 'demo' }] })
  const session = await openSpeech(gateway.port, { token: await gateway.token() })
  await session.start()
  session.sendAudio(new Uint8Array(32_000))
  await session.end()
  const [request, speech] = await receiver.named('GET /v1/stt', 'speech session')
  expect(speech?.parentSpanId).toBe(String(request?.spanId))
  expect(speech?.attributes).toMatchObject({
    'sluice.speech.audio_ms': 1_000,
    'sluice.speech.end': 'client_end',
  })
})

test('a failed request has an error, an unknown path has no route in its name', async () => {
  const { gateway, receiver } = await start()
  await ask(gateway, '/v1/responses', { model: 'demo-fail', input: 'Hi.' })
  await gateway.request('/v1/nothing?token=secret')
  const [failed, unknown] = await receiver.named('POST /v1/responses', 'GET')
  expect(failed?.statusCode).toBe(2)
  expect(failed?.attributes['error.type']).toBe('upstream_error')
  expect(unknown?.attributes).toMatchObject({
    'url.path': '/v1/nothing',
    'error.type': 'not_found',
  })
  expect(JSON.stringify(receiver.spans)).not.toContain('secret')
})

test('an unreachable collector costs spans, which are counted, and no request', async () => {
  const { gateway, receiver } = await start({ OTEL_BSP_MAX_QUEUE_SIZE: '4' })
  await receiver.stop()
  for (let at = 0; at < 4; at++) {
    expect(await ask(gateway, '/v1/responses', { input: 'Hi.', store: false })).toContain(
      'completed',
    )
  }
  await eventually('dropped spans are counted', () =>
    JSON.stringify(gateway.deps.metrics.snapshot()).includes('queue_full'),
  )
  await eventually('the failure is logged', () =>
    gateway.logLines.some((line) => line.includes('trace export failed')),
  )
})

test('a shutdown exports what waits', async () => {
  const { gateway, receiver } = await start({ OTEL_BSP_SCHEDULE_DELAY: '3600000' })
  await ask(gateway, '/v1/responses', { input: 'Hi.', store: false }, sampled)
  expect(receiver.spans).toEqual([])
  await gateway.stop()
  cleanups.pop()
  expect(receiver.spans).toHaveLength(3)
})

test('protobuf is the default, with the configured headers and attributes', async () => {
  const { gateway, receiver } = await start({
    OTEL_EXPORTER_OTLP_PROTOCOL: '',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc,x-tenant=a',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    OTEL_SERVICE_NAME: 'gateway-of-tests',
  })
  await ask(gateway, '/v1/responses', { input: 'Hi.', store: false })
  await eventually('an export arrives', () => receiver.exports.length > 0)
  const [{ headers, bytes } = { headers: new Headers(), bytes: new Uint8Array() }] =
    receiver.exports
  expect(headers.get('content-type')).toBe('application/x-protobuf')
  expect([headers.get('authorization'), headers.get('x-tenant')]).toEqual(['Basic abc', 'a'])
  const text = Buffer.from(bytes).toString('latin1')
  for (const part of ['gateway-of-tests', 'deployment.environment.name', 'gen_ai.operation.name']) {
    expect(text).toContain(part)
  }
})
