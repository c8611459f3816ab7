import { afterAll, beforeAll, expect, test } from 'bun:test'
import { messagesErrorBody } from '#api/error-shapes.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { messageEvent } from '#surfaces/messages/schema/events.ts'
import { answerSchema, checkDescribed } from '#test/support/described-shapes.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import { surfaceOperations } from '#test/support/surface-operations.ts'

/** Responses of a gateway under /compat, against the documented schema of each endpoint. */

const createOperation = surfaceOperations.at('POST /compat/v1/messages')

let gateway: Gateway

beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const hello = {
  model: 'demo-fast',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
}

async function answerOf(detail: unknown, asked: Promise<Response>): Promise<JsonObject> {
  const answer = await asked
  const body = asRecord(await answer.json())
  checkDescribed(answerSchema(detail, answer.status), body)
  return body
}

const create = (body: object) =>
  answerOf(createOperation, gateway.post('/compat/v1/messages', body))

test('a message is returned complete', async () => {
  const message = await create(hello)
  expect(message['stop_reason']).toBe('end_turn')
  // The fields that an upstream of the same protocol may omit.
  const optional = ['container', 'diagnostics', 'stop_details', 'stop_sequence']
  for (const field of Object.keys(message).filter((name) => !optional.includes(name))) {
    const { [field]: _, ...rest } = message
    expect(() => checkDescribed(answerSchema(createOperation), rest), field).toThrow()
  }
})

test('a call is a block of the documented schema', async () => {
  const tools = [{ name: 'look', input_schema: { type: 'object' } }]
  const { content } = await create({ ...hello, tools, tool_choice: { type: 'any' } })
  expect(content).toMatchObject([{ type: 'tool_use', name: 'look' }])
})

test('thinking blocks conform to the documented schema', async () => {
  const thinking = { type: 'enabled', budget_tokens: 1024 }
  const { content } = await create({ ...hello, model: 'demo-reasoning', thinking })
  expect(content).toMatchObject([{ type: 'thinking' }, { type: 'text' }])
})

test('a message is streamed', async () => {
  const httpResponse = await gateway.post('/compat/v1/messages', { ...hello, stream: true })
  const { frames } = checkMessageStream(await httpResponse.text())
  for (const frame of frames) checkDescribed(messageEvent, frame)
  const types = new Set(frames.map(({ type }) => type))
  expect([...types].filter((type) => type !== 'ping')).toEqual([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
})

test('tokens are counted', async () => {
  const { max_tokens: _, ...asked } = hello
  const counted = gateway.post('/compat/v1/messages/count_tokens', asked)
  await answerOf(surfaceOperations.at('POST /compat/v1/messages/count_tokens'), counted)
})

test('models are listed and shown', async () => {
  const list = surfaceOperations.at('GET /compat/v1/models')
  const retrieve = surfaceOperations.at('GET /compat/v1/models/*')
  const { data } = await answerOf(list, gateway.request('/compat/v1/models?limit=1000'))
  const [first] = Array.isArray(data) ? data : []
  const { id } = asRecord(first)
  expect(await answerOf(retrieve, gateway.request(`/compat/v1/models/${id}`))).toEqual(first)
})

test('an error conforms to the documented schema', async () => {
  const refused = await gateway.post('/compat/v1/messages', { ...hello, thread: {} })
  expect(refused.status).toBe(400)
  const body = asRecord(await refused.json())
  checkDescribed(messagesErrorBody, body)
  expect(JSON.stringify(createOperation)).toContain('thread_unsupported_request')
  expect(asRecord(body['error'])['details']).toEqual({ error_code: 'thread_unsupported_request' })
})
