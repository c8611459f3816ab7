import { afterAll, beforeAll, expect, test } from 'bun:test'
import { asRecord, parseJson } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { startReplayUpstream } from '#test/support/replay-upstream.ts'

/** Output that the Messages format has no blocks for is named, not dropped without a sign. */

const image = 'data:image/png;base64,iVBORw0KGgo='
const withImage = {
  role: 'assistant',
  content: 'Here it is.',
  images: [{ type: 'image_url', image_url: { url: image } }],
}
const chatBody = (message: object) => ({
  object: 'chat.completion',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 6, total_tokens: 13 },
})
const code = {
  type: 'code_interpreter_call',
  id: 'ci_1',
  status: 'completed',
  code: 'print(1)',
  container_id: 'c',
  outputs: [{ type: 'logs', logs: '1' }],
}
const text = {
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'Here it is.', annotations: [] }],
}
const responseBody = (output: object[]) => ({ object: 'response', status: 'completed', output })

const upstream = await startReplayUpstream({})
let gateway: Gateway
beforeAll(async () => {
  const entry = { url: upstream.baseUrl }
  gateway = await startGateway({
    upstream: [
      { name: 'c', api: 'chat', models: ['chat'], ...entry },
      { name: 'r', api: 'responses', models: ['responses'], ...entry },
    ],
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

async function ask(model: string, body: object, stream: boolean): Promise<Response> {
  upstream.answer({
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const messages = [{ role: 'user', content: 'Draw.' }]
  return gateway.post('/compat/v1/messages', { model, max_tokens: 99, messages, stream })
}

const cases: [string, string, object][] = [
  ['image_generation_call', 'chat', chatBody(withImage)],
  ['code_interpreter_call', 'responses', responseBody([code, text])],
]

test.each(cases)('%s of a whole message', async (type, model, body) => {
  const response = await ask(model, body, false)
  expect(response.headers.get('x-sluice-warning')).toBe('output_omitted')
  const message = asRecord(await response.json())
  expect(message['content']).toEqual([{ type: 'text', text: 'Here it is.' }])
  expect(message['warning']).toEqual({
    code: 'output_omitted',
    message: `The response has output that messages have no blocks for: ${type}.`,
  })
})

test.each(cases)('%s of a stream', async (type, model, body) => {
  const response = await ask(model, body, true)
  const [, data = ''] = /event: message_delta\ndata: (.*)\n/.exec(await response.text()) ?? []
  expect(String(asRecord(asRecord(parseJson(data))['warning'])['message'])).toContain(type)
})

test.each([
  ['chat', chatBody({ role: 'assistant', content: 'Here it is.' })],
  ['responses', responseBody([text])],
])('a message from a %s upstream that lacks nothing has no warning', async (model, body) => {
  const response = await ask(model, body, false)
  expect(response.headers.has('x-sluice-warning')).toBe(false)
  expect(asRecord(await response.json())).not.toHaveProperty('warning')
})
