import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Asynchronous tools, and what upstreams of this format report about a call. */

const reported = {
  tool_usage: {
    image_gen: {
      input_tokens: 0,
      input_tokens_details: { image_tokens: 0, text_tokens: 0 },
      output_tokens: 0,
      total_tokens: 0,
    },
    web_search: { num_requests: 2 },
  },
  input_transformations: [
    { id: 'rs_1', action: 'removed', reason: 'model_mismatch', type: 'reasoning' },
  ],
  prompt_cache_diagnostics: {
    type: 'cache_miss',
    reason: 'tools_changed',
    cache_missed_tokens: 1_024,
  },
}
const call = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' }
const nativeObject = {
  id: 'resp_upstream',
  object: 'response',
  status: 'completed',
  output: [{ ...call, id: 'fc_1', status: 'completed', async: true }],
  usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  ...reported,
}
const nativeBody = `data: ${JSON.stringify({ type: 'response.completed', response: nativeObject })}\n\n`
const chatCall = chunk({
  tool_calls: [
    { index: 0, id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } },
  ],
})

let native: ReplayUpstream
let chat: ReplayUpstream
let gateway: Gateway

beforeAll(async () => {
  native = await startReplayUpstream(({ body }) =>
    JSON.parse(body).stream
      ? { body: nativeBody }
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(nativeObject) },
  )
  chat = await startReplayUpstream({ body: chatStream([chatCall, chunk({}, 'tool_calls')]) })
  gateway = await startGateway({
    upstream: [
      { api: 'responses', url: native.baseUrl, models: ['native'], vendorFields: true },
      { url: chat.baseUrl, models: ['chat'] },
    ],
  })
})
afterAll(async () => {
  await gateway.stop()
  await native.stop()
  await chat.stop()
})

const tools = [
  { type: 'function', name: 'look', parameters: { type: 'object' }, async: true },
  { type: 'custom', name: 'write', async: true },
  { type: 'function', name: 'wait', parameters: { type: 'object' } },
]
const ask = async (model: string, more: object = {}) => {
  const body = { model, input: 'Hi', store: false, tools, ...more }
  const response = await gateway.post('/v1/responses', body)
  expect(response.status).toBe(200)
  return response
}
const sentTo = (upstream: ReplayUpstream) => JSON.parse(upstream.requests.at(-1)?.body ?? '{}')

describe('an upstream of this format', () => {
  test.each([{ stream: false }, { stream: true }])(
    'gets the options, and its reports reach the client ($stream)',
    async ({ stream }) => {
      const prompt_cache_options = {
        mode: 'explicit',
        ttl: '12h',
        comparison_response_id: 'resp_1',
      }
      const response = await ask('native', { stream, prompt_cache_options })
      const text = await response.text()
      const last = text.split('\n').findLast((line) => line.startsWith('data: {'))
      const object = stream ? JSON.parse(last?.slice(6) ?? '').response : JSON.parse(text)
      expect(object).toMatchObject(reported)
      expect(object.output).toMatchObject([{ ...call, async: true }])
      const sent = sentTo(native)
      expect(sent.prompt_cache_options).toEqual(prompt_cache_options)
      expect(sent.tools.map((tool: { async?: boolean }) => tool.async)).toEqual([
        true,
        true,
        undefined,
      ])
    },
  )

  test('gets an asynchronous call without its result', async () => {
    const input = [
      { role: 'user', content: 'Hi' },
      { ...call, async: true },
    ]
    await (await ask('native', { input })).text()
    expect(sentTo(native).input.at(-1)).toEqual({ ...call, async: true })
  })
})

describe('an upstream of another format', () => {
  test('gets a plain tool; its calls are marked as asynchronous', async () => {
    const object = Object(await (await ask('chat')).json())
    expect(object.output).toMatchObject([{ ...call, async: true }])
    expect(object).not.toHaveProperty('tool_usage')
    expect(JSON.stringify(sentTo(chat))).not.toContain('async')
  })

  test('goes on without the result, which takes its place when it comes', async () => {
    const history = [
      { role: 'user', content: 'Hi' },
      { ...call, async: true },
      { role: 'user', content: 'And meanwhile?' },
    ]
    await (await ask('chat', { input: history })).text()
    expect(sentTo(chat).messages[2]).toMatchObject({
      role: 'tool',
      content: expect.stringContaining('still running'),
    })
    const output = { type: 'function_call_output', call_id: 'c1', output: 'done' }
    await (await ask('chat', { input: [...history, output] })).text()
    expect(sentTo(chat).messages[2]).toMatchObject({ role: 'tool', content: 'done' })
  })
})
