import { afterAll, afterEach, expect, test } from 'bun:test'
import { startGateway } from '#test/support/gateway.ts'
import { configFile, stopProcesses } from '#test/support/process.ts'
import {
  ask,
  cleanUpAll,
  cleanups,
  sampled,
  start,
  traceId,
  unsampled,
  upstreamOf,
  whole,
} from './traced-gateway.ts'

afterEach(cleanUpAll)
afterAll(stopProcesses)

test.each([
  ['always_off', '1', sampled],
  ['parentbased_always_on', '1', unsampled],
  ['parentbased_traceidratio', '0', {}],
  ['traceidratio', '0', sampled],
])(
  '%s with %s keeps nothing of a trace that it does not sample',
  async (sampler, share, headers) => {
    const upstream = await upstreamOf(whole)
    const { gateway, receiver } = await start(
      { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: share },
      { upstream: [{ url: upstream.baseUrl, models: ['m'] }] },
    )
    await ask(gateway, '/v1/responses', { model: 'm', input: 'Hi.', store: false }, headers)
    await gateway.stop()
    cleanups.pop()
    expect(receiver.exports).toEqual([])
    const generations = upstream.requests.filter(({ method }) => method === 'POST')
    // The upstream learns that the trace is not kept.
    expect(generations.map((request) => request.headers['traceparent']?.slice(-3))).toEqual(['-00'])
  },
)

test('the decision of the client precedes the ratio', async () => {
  const { gateway, receiver } = await start({
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0',
  })
  await ask(gateway, '/v1/responses', { input: 'Hi.', store: false }, sampled)
  const [request] = await receiver.named('POST /v1/responses')
  expect(request?.traceId).toBe(traceId)
})

test('without a collector the trace of the client is passed on, and nothing else is done', async () => {
  const upstream = await upstreamOf(whole)
  const gateway = await startGateway({ upstream: [{ url: upstream.baseUrl, models: ['m'] }] })
  cleanups.push(gateway.stop)
  expect(gateway.deps.tracer).toBeNull()
  await ask(gateway, '/v1/responses', { model: 'm', input: 'Hi.', store: false }, sampled)
  const [generation] = upstream.requests.filter(({ method }) => method === 'POST')
  expect(generation?.headers).toMatchObject(sampled)
})

const secret = 'sk-svc-v1-abcdefghijklmnop'
const contents = [
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.system_instructions',
] as const

test('contents are recorded only on request, without credentials and configured patterns, and bounded', async () => {
  const body = {
    input: `My number is 0170-123, my key ${secret}. ${'x'.repeat(9_000)}`,
    instructions: 'Be kind.',
  }
  const off = await start()
  await ask(off.gateway, '/v1/responses', body)
  const [plain] = await off.receiver.named('chat demo-fast')
  expect(Object.keys(plain?.attributes ?? {})).not.toContainAnyValues([...contents])
  expect(Buffer.concat(off.receiver.exports.map(({ bytes }) => bytes)).toString()).not.toContain(
    'Be kind',
  )

  const on = await start({
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true',
    SLUICE_CONFIG: configFile("[tracing]\ncontent_redact = ['\\d{4}-\\d{3}']\n"),
  })
  await ask(on.gateway, '/v1/responses', body)
  const [full] = await on.receiver.named('chat demo-fast')
  const [input, output, instructions] = contents.map((name) => String(full?.attributes[name]))
  expect(input).toContain('My number is [redacted], my key [redacted]')
  expect(instructions).toBe('Be kind.')
  expect(output).toContain('You said')
  expect([input, output].join()).not.toContain('abcdefghijkl')
  expect(Math.max(input?.length ?? 0, output?.length ?? 0)).toBeLessThan(4_096 + 200)
})
