import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { streamEvent } from '#surfaces/responses/schema/events.ts'
import { serverFrame } from '#surfaces/responses/websocket.ts'
import { answerSchema, checkDescribed } from '#test/support/described-shapes.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFrames } from '#test/support/response-frames.ts'
import { openSocket } from '#test/support/socket-client.ts'
import { surfaceOperations } from '#test/support/surface-operations.ts'

/** Responses of a gateway, against the documented schema of each endpoint. */

let gateway: Gateway

beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const model = 'demo-fast'
const hello = { model, input: 'Hello' }

/** The body of a response, which must conform to its endpoint. */
async function ask(place: string, path: string, body?: object) {
  const method = place.split(' ')[0] ?? ''
  const httpResponse = await gateway.request(path, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  expect(httpResponse.status, path).toBe(200)
  const responseBody = asRecord(await httpResponse.json())
  checkDescribed(answerSchema(surfaceOperations.at(place)), responseBody)
  return responseBody
}

async function stream(path: string, init?: RequestInit): Promise<readonly JsonObject[]> {
  const events = readFrames(await (await gateway.request(path, init)).text())
  for (const event of events) checkDescribed(streamEvent, event)
  return events
}

const create = (body: object) => ask('POST /v1/responses', '/v1/responses', body)

describe('a response', () => {
  test('is returned complete and stored, and conforms to the documented schema', async () => {
    const created = await create({ ...hello, metadata: { a: 'b' }, reasoning: { effort: 'low' } })
    const path = `/v1/responses/${created['id']}`
    expect(await ask('GET /v1/responses/:id', path)).toEqual(created)
    const items = await ask('GET /v1/responses/:id/input_items', `${path}/input_items`)
    expect(items['data']).toHaveLength(1)
    await ask('POST /v1/responses/:id/cancel', `${path}/cancel`)
    await ask('DELETE /v1/responses/:id', path)
  })

  test('is streamed, and streamed again', async () => {
    const body = JSON.stringify({ ...hello, stream: true })
    const events = await stream('/v1/responses', { method: 'POST', body })
    const { id } = asRecord(events[0]?.['response'])
    expect(await stream(`/v1/responses/${id}?stream=true`)).toEqual(events)
    expect(await stream(`/v1/responses/${id}?stream=true&starting_after=2`)).toEqual(
      events.slice(3),
    )
  })

  test('is queued in the background, and conforms to the documented schema', async () => {
    const { id, status } = await create({ ...hello, background: true })
    expect(status).toBe('queued')
    const events = await stream(`/v1/responses/${id}?stream=true`)
    expect(events.map(({ type }) => type)).toContain('response.queued')
  })

  test('has every documented field', async () => {
    const whole = await create({ ...hello, store: false })
    for (const field of Object.keys(whole)) {
      const { [field]: _, ...rest } = whole
      expect(
        () => checkDescribed(answerSchema(surfaceOperations.at('POST /v1/responses')), rest),
        field,
      ).toThrow()
    }
  })

  test('is counted and compacted', async () => {
    await ask('POST /v1/responses/input_tokens', '/v1/responses/input_tokens', hello)
    await ask('POST /v1/responses/compact', '/v1/responses/compact', hello)
  })
})

test('a tool call and its output are items of the documented schema', async () => {
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object' } }]
  const first = await create({ ...hello, tools, tool_choice: 'required' })
  const call = asRecord(Array.isArray(first['output']) ? first['output'].at(-1) : null)
  expect(call['type']).toBe('function_call')
  const output = { type: 'function_call_output', call_id: call['call_id'], output: 'A wall.' }
  const next = { model, tools, input: [output], previous_response_id: first['id'] }
  const second = await create(next)
  await ask('GET /v1/responses/:id/input_items', `/v1/responses/${second['id']}/input_items`)
})

test('a conversation and its items conform to the documented schema', async () => {
  const { id } = await ask('POST /v1/conversations', '/v1/conversations', { metadata: { a: 'b' } })
  const path = `/v1/conversations/${id}`
  await ask('GET /v1/conversations/:id', path)
  await ask('POST /v1/conversations/:id', path, { metadata: {} })
  await create({ ...hello, conversation: id })
  const added = await ask('POST /v1/conversations/:id/items', `${path}/items`, {
    items: [
      { role: 'user', content: 'And?' },
      { type: 'acme_call', anything: 1 },
    ],
  })
  await ask('GET /v1/conversations/:id/items', `${path}/items?order=asc&limit=100`)
  const item = `${path}/items/${added['first_id']}`
  await ask('GET /v1/conversations/:id/items/:itemId', item)
  await ask('DELETE /v1/conversations/:id/items/:itemId', item)
  await ask('DELETE /v1/conversations/:id', path)
})

test('WebSocket frames conform to the documented schema', async () => {
  const headers = { authorization: `Bearer ${await gateway.token()}` }
  const client = await openSocket(gateway.port, { headers })
  client.send({ type: 'response.create', ...hello, store: false, stream_id: 'a' })
  client.send({ type: 'response.create', model: 'none', input: 'x', stream_id: 'b' })
  const frames = () => client.texts.map((text) => asRecord(JSON.parse(text)))
  await eventually('both are answered', () => frames().at(-1)?.['stream_id'] === 'b')
  const { events } = await client.turn({ ...hello, store: false })
  for (const frame of frames()) checkDescribed(serverFrame, frame)
  expect(new Set(frames().map((frame) => frame['stream_id']))).toEqual(
    new Set(['a', 'b', undefined]),
  )
  expect(events.length).toBeGreaterThan(3)
  client.socket.destroy()
})

test('a request without an upgrade is refused as documented', async () => {
  const httpResponse = await gateway.request('/v1/responses')
  expect(Object.keys(asRecord(surfaceOperations.at('GET /v1/responses').responses))).toContain(
    String(httpResponse.status),
  )
  expect(httpResponse.status).toBe(426)
})
