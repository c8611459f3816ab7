import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { begun, stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import { sendRaw } from '#test/support/raw-client.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'
import { checkStream, readFrames, readOpenFrames } from '#test/support/response-frames.ts'

/** Stored responses survive their connections. */

const abandonMs = 300
let upstream: ReplayUpstream
let gateway: Gateway
let token: string

beforeAll(async () => {
  upstream = await upstreamThat({})
  gateway = await startGateway({
    upstream: [{ url: upstream.baseUrl, models: ['m'] }],
    responses: { abandonMs },
  })
  token = await gateway.token()
})
afterAll(async () => {
  await gateway.stop()
  await stopUpstreams()
})

const running = () => gateway.deps.inference.running()

async function get(path: string) {
  const httpResponse = await gateway.request(`/v1/responses/${path}`)
  return { status: httpResponse.status, body: Object(await httpResponse.json()) }
}

/** A stream that has begun and whose upstream waits. */
async function openStream(body: object = {}) {
  upstream.answer({ body: begun, ending: 'hang' })
  const httpResponse = await gateway.post('/v1/responses', {
    model: 'm',
    input: 'x',
    stream: true,
    ...body,
  })
  const events = readEvents(httpResponse)
  await events.until(/output_text\.delta/)
  const [first] = readOpenFrames(events.text())
  return { id: String(Object(first?.['response'])['id']), events }
}

describe('a stored response', () => {
  test('exists before its client receives the terminal event', async () => {
    upstream.answer({ body: whole })
    for (let turn = 0; turn < 20; turn++) {
      const httpResponse = await gateway.post('/v1/responses', {
        model: 'm',
        input: 'x',
        stream: true,
      })
      const { response } = checkStream(await httpResponse.text())
      expect(await get(String(response['id']))).toEqual({ status: 200, body: response })
    }
  })

  test('with store false is not stored', async () => {
    upstream.answer({ body: whole })
    const created = await gateway.post('/v1/responses', { model: 'm', input: 'x', store: false })
    const { id, store } = Object(await created.json())
    expect(store).toBe(false)
    expect((await get(id)).status).toBe(404)
  })

  test('lists its input in pages, each item with an id', async () => {
    upstream.answer({ body: whole })
    const input = ['a', 'b', 'c'].map((text) => ({ role: 'user', content: text }))
    const created = await gateway.post('/v1/responses', { model: 'm', input })
    const { id } = Object(await created.json())
    const first = await get(`${id}/input_items?order=asc&limit=2`)
    expect(first.body).toMatchObject({ object: 'list', has_more: true })
    const second = await get(`${id}/input_items?order=asc&limit=2&after=${first.body['last_id']}`)
    expect(second.body['has_more']).toBe(false)
    const items = [...first.body['data'], ...second.body['data']]
    expect(items.map((item) => item['content'][0]['text'])).toEqual(['a', 'b', 'c'])
    expect(new Set(items.map((item) => item['id'])).size).toBe(3)
  })

  test('is not found after its deletion, including for responses that continue it', async () => {
    upstream.answer({ body: whole })
    const created = await gateway.post('/v1/responses', { model: 'm', input: 'x' })
    const { id } = Object(await created.json())
    const deleted = await gateway.request(`/v1/responses/${id}`, { method: 'DELETE' })
    expect(await deleted.json()).toEqual({ id, object: 'response.deleted', deleted: true })
    expect((await get(id)).status).toBe(404)
    const next = await gateway.post('/v1/responses', {
      model: 'm',
      input: 'x',
      previous_response_id: id,
    })
    expect([next.status, Object(await next.json())['error']['code']]).toEqual([
      400,
      'previous_response_not_found',
    ])
  })
})

test('refuses an input that is too long to be stored, which is accepted without storing', async () => {
  const small = await startGateway({
    upstream: [{ url: upstream.baseUrl, models: ['m'] }],
    responses: { storedCharsMax: 1024 },
  })
  upstream.answer({ body: whole })
  const ask = (body: object) =>
    small.post('/v1/responses', { model: 'm', input: 'x'.repeat(2000), ...body })
  const refused = await ask({})
  expect([refused.status, Object(await refused.json())['error']['param']]).toEqual([413, 'input'])
  expect((await ask({ store: false })).status).toBe(200)
  expect((await ask({ input: 'short' })).status).toBe(200)
  await small.stop()
})

describe('a client that disconnects from a stored stream', () => {
  test('can resume it without losing events', async () => {
    const { id } = await openStream()
    const watching = gateway.request(`/v1/responses/${id}?stream=true&starting_after=2`)
    const events = readEvents(await watching)
    await events.until(/output_text\.delta/)
    expect(readOpenFrames(events.text())[0]?.['sequence_number']).toBe(3)
    const cancelled = await gateway.request(`/v1/responses/${id}/cancel`, { method: 'POST' })
    expect(Object(await cancelled.json())).toMatchObject({ id, status: 'cancelled' })
    expect(readFrames(await events.whole()).at(-1)?.type).toBe('response.incomplete')
  })

  test('permanently ends it after the grace period', async () => {
    upstream.answer({ body: begun, ending: 'hang' })
    const client = sendRaw({
      port: gateway.port,
      token,
      body: { model: 'm', input: 'x', stream: true },
    })
    await eventually('the answer has begun', () => client.bytesReceived() > 0)
    client.socket.destroy()
    await client.body().catch(() => {})
    await eventually('the generation is over', () => running() === 0)
    await upstream.until(({ connections }) => connections.open === 0)
  })

  test('before its first event ends it at once', async () => {
    const patient = await startGateway({
      upstream: [{ url: upstream.baseUrl, models: ['m'] }],
      responses: { abandonMs: 3_600_000 },
    })
    upstream.answer({ ending: 'silent' })
    for (const stream of [true, false]) {
      const requestCount = upstream.requests.length
      const client = sendRaw({
        port: patient.port,
        token,
        body: { model: 'm', input: 'x', stream },
      })
      await upstream.until(({ requests }) => requests.length === requestCount + 1)
      client.socket.destroy()
      await eventually('the generation is over', () => patient.deps.inference.running() === 0)
    }
    await patient.stop()
  })
})

describe('a stored response that fails', () => {
  test('before its first output is an HTTP status, and is not stored', async () => {
    upstream.answer({ status: 400, body: '{"error":{"message":"no"}}' })
    const refused = await gateway.post('/v1/responses', { model: 'm', input: 'x', stream: true })
    expect(refused.status).toBe(400)
  })

  test('in the middle is stored with its output', async () => {
    upstream.answer({ body: begun, ending: 'cut' })
    const httpResponse = await gateway.post('/v1/responses', {
      model: 'm',
      input: 'x',
      stream: true,
    })
    const { response } = checkStream(await httpResponse.text())
    expect(response['status']).toBe('failed')
    expect((await get(String(response['id']))).body).toEqual(response)
  })
})

describe('a query of a stored response', () => {
  test.each([
    ['stream=maybe', 'stream'],
    ['starting_after=3', 'starting_after'],
    ['stream=true&starting_after=-1', 'starting_after'],
    ['stream=true&starting_after=x', 'starting_after'],
  ])('is refused if invalid: %s', async (query, param) => {
    const { status, body } = await get(`resp_x?${query}`)
    expect([status, body['error']['param']]).toEqual([400, param])
  })

  test('may name any event that a client can count, also beyond the last one', async () => {
    upstream.answer({ body: whole })
    const created = await gateway.post('/v1/responses', { model: 'm', input: 'x' })
    const { id } = Object(await created.json())
    for (const after of [2 ** 31 - 1, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
      const query = `stream=true&starting_after=${after}`
      const rest = await gateway.request(`/v1/responses/${id}?${query}`)
      expect([rest.status, await rest.text()]).toEqual([200, 'data: [DONE]\n\n'])
    }
  })

  test.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['order=up', 'order'],
  ])('is refused if invalid: input_items?%s', async (query, param) => {
    const { status, body } = await get(`resp_x/input_items?${query}`)
    expect([status, body['error']['param']]).toEqual([400, param])
  })
})
