import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import type { ReplayRequest, ReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'
import { openSocket, readTurn, type SocketClient } from '#test/support/socket-client.ts'

/** Responses over a WebSocket; their events are validated like those of a stream. */

let upstream: ReplayUpstream
let gateway: Gateway
let token: string

beforeAll(async () => {
  upstream = await upstreamThat({})
  upstream.answer(({ body }) => ({ body: chatAnswer(body) }))
  gateway = await startGateway({
    upstream: [{ url: upstream.baseUrl, models: ['m'] }, { api: 'demo' }],
  })
  token = await gateway.token()
})
afterAll(async () => {
  await gateway.stop()
  await stopUpstreams()
})

const open = (bearer = token) =>
  openSocket(gateway.port, { headers: { authorization: `Bearer ${bearer}` } })
const ask = (input: unknown, more: object = {}) => ({ model: 'm', input, store: false, ...more })
/** The messages of the last upstream request. */
const lastPrompt = () => JSON.parse(upstream.requests.at(-1)?.body ?? '{}').messages
const weather = { type: 'function', name: 'get_weather', parameters: { type: 'object' } }
const notFound = { status: 400, code: 'previous_response_not_found' }

describe('a response over a WebSocket', () => {
  test('has the events of a stream, and nothing after them', async () => {
    const client = await open()
    const { events, response } = await client.turn(ask('hi'))
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
    expect(response).toMatchObject({ status: 'completed', store: false })
    client.socket.destroy()
  })

  test('needs only its request, and a connection serves many', async () => {
    const client = await open()
    const ids = new Set<unknown>()
    for (const input of ['one', 'two', 'three']) {
      ids.add((await client.turn(ask(input))).response?.['id'])
    }
    expect(ids.size).toBe(3)
    expect(lastPrompt()).toHaveLength(1)
    client.socket.destroy()
  })

  test('ignores fields that only a POST needs', async () => {
    const client = await open()
    const more = { stream: 'yes', stream_options: 7 }
    expect((await client.turn(ask('hi', more))).response).toMatchObject({ status: 'completed' })
    expect((await client.turn(ask('hi', { stream: false }))).events.length).toBeGreaterThan(2)
    client.socket.destroy()
  })

  test('cannot run in the background', async () => {
    const client = await open()
    const { failure } = await client.turn({ ...ask('hi'), background: true, store: true })
    expect(failure).toMatchObject({ status: 400, code: 'invalid_request' })
    expect((await client.turn(ask('hi'))).failure).toBeUndefined()
    client.socket.destroy()
  })

  test('has the stream id of its request on every event and on a failure', async () => {
    const client = await open()
    const { events } = await client.turn(ask('hi', { stream_id: 'lane_1.a-B' }))
    expect(new Set(events.map((event) => event['stream_id']))).toEqual(new Set(['lane_1.a-B']))
    const refused = await client.turn({ model: 'none', input: 'x', stream_id: 'two' })
    expect(refused.events).toMatchObject([{ type: 'error', status: 404, stream_id: 'two' }])
    expect((await client.turn(ask('hi'))).events[0]).not.toHaveProperty('stream_id')
    client.socket.destroy()
  })

  test('that fails before its first event is an error frame with the HTTP status', async () => {
    const client = await open()
    client.send({ type: 'response.create', model: 'demo-fail', input: 'x', store: false })
    expect(await client.read(1)).toEqual([
      {
        type: 'error',
        status: 502,
        error: {
          type: 'upstream_error',
          code: 'upstream_error',
          message: 'The demo upstream failed before its first word, as requested.',
          param: null,
        },
      },
    ])
    expect((await client.turn(ask('hi'))).failure).toBeUndefined()
    client.socket.destroy()
  })

  test('that fails in the middle ends as a stream does', async () => {
    const client = await open()
    const { events } = await client.turn({ model: 'demo-fail-midway', input: 'x', store: false })
    expect(events.slice(-2)).toMatchObject([
      { type: 'error', code: 'upstream_error' },
      { type: 'response.failed', response: { status: 'failed' } },
    ])
    expect(events.at(-2)).not.toHaveProperty('status')
    client.socket.destroy()
  })
})

describe('a silent response over a WebSocket', () => {
  test.each([{ store: true }, { store: false }])(
    'sends heartbeats, and reports its failure by events (store: $store)',
    async ({ store }) => {
      const quick = await startGateway({
        upstream: [{ url: upstream.baseUrl, models: ['m'] }],
        stream: { heartbeatMs: 20 },
      })
      const scripted = ({ body }: ReplayRequest) => ({ body: chatAnswer(body) })
      upstream.answer({ ending: 'silent' })
      const headers = { authorization: `Bearer ${token}` }
      const client = await openSocket(quick.port, { headers })
      client.send({ type: 'response.create', ...ask('hi', { store }) })
      const beats = await client.read(5)
      expect(new Set(beats.slice(1).map(({ type }) => type))).toEqual(
        new Set(['response.in_progress']),
      )
      await eventually('every attempt was cut', () => {
        upstream.cut()
        return client.texts.at(-1)?.includes('failed') === true
      })
      expect((await readTurn(client.texts)).response).toMatchObject({ status: 'failed' })
      client.socket.destroy()
      upstream.answer(scripted)
      await quick.stop()
    },
  )
})

describe('an unstored response', () => {
  test('can be continued on its own connection, and so can the next one', async () => {
    const client = await open()
    const first = await client.turn(ask('my name is Ann'))
    const second = await client.turn(
      ask('what is it?', { previous_response_id: first.response?.['id'] }),
    )
    expect(lastPrompt().map(({ content }: { content: unknown }) => content)).toEqual([
      'my name is Ann',
      'Hello wörld',
      'what is it?',
    ])
    expect(second.response).toMatchObject({ previous_response_id: first.response?.['id'] })
    await client.turn(ask('and now?', { previous_response_id: second.response?.['id'] }))
    expect(lastPrompt()).toHaveLength(5)
    // The first response is still available as a branch.
    await client.turn(ask('or else?', { previous_response_id: first.response?.['id'] }))
    expect(lastPrompt()).toHaveLength(3)
    client.socket.destroy()
  })

  test('can be continued with the result of its tool call', async () => {
    const client = await open()
    const { response } = await client.turn(ask('weather?', { tools: [weather] }))
    const [call] = Object(response)['output']
    expect(call).toMatchObject({ type: 'function_call', call_id: 'a' })
    const output = { type: 'function_call_output', call_id: 'a', output: 'rain' }
    const id = response?.['id']
    const { response: after } = await client.turn(ask([output], { previous_response_id: id }))
    expect(JSON.stringify(after)).toContain('It is rain.')
    client.socket.destroy()
  })

  test('is unknown on another connection, which stays open', async () => {
    const first = await open()
    const { response } = await first.turn(ask('hi'))
    first.socket.destroy()
    const second = await open()
    const again = await second.turn(ask('go on', { previous_response_id: response?.['id'] }))
    expect(again.failure).toMatchObject(notFound)
    expect((await second.turn(ask('hi'))).response).toMatchObject({ status: 'completed' })
    second.socket.destroy()
  })

  test('becomes part of a stored response that continues it', async () => {
    const client = await open()
    const { response: loose } = await client.turn(ask('loose'))
    const stored = { model: 'm', previous_response_id: loose?.['id'], input: 'kept' }
    const { response: kept } = await client.turn(stored)
    expect(kept).toMatchObject({ store: true, previous_response_id: loose?.['id'] })
    client.socket.destroy()
    const next = { model: 'm', input: 'next', previous_response_id: kept?.['id'] }
    expect((await gateway.post('/v1/responses', next)).status).toBe(200)
    expect(lastPrompt().map(({ content }: { content: unknown }) => content)).toEqual([
      'loose',
      'Hello wörld',
      'kept',
      'Hello wörld',
      'next',
    ])
  })
})

describe('a failed request removes its predecessor', () => {
  const failures: [how: string, request: object][] = [
    ['for its input', { input: [{ type: 'function_call_output', call_id: 'no', output: 'x' }] }],
    ['for its model', { model: 'none' }],
    ['at the upstream', { model: 'demo-fail' }],
    ['in the middle', { model: 'demo-fail-midway' }],
  ]

  test.each(failures)('%s', async (_, request) => {
    const client = await open()
    const { response } = await client.turn(ask('hi'))
    const { response: other } = await client.turn(ask('hi'))
    const next = { previous_response_id: response?.['id'] }
    const failed = await client.turn(ask('go on', { ...next, ...request }))
    expect(failed.failure ?? failed.response?.['error']).toMatchObject({ code: expect.anything() })
    expect((await client.turn(ask('again', next))).failure).toMatchObject(notFound)
    const spared = ask('again', { previous_response_id: other?.['id'] })
    expect((await client.turn(spared)).failure).toBeUndefined()
    client.socket.destroy()
  })

  test('and cannot be continued itself', async () => {
    const client = await open()
    const { response } = await client.turn({ model: 'demo-fail-midway', input: 'x', store: false })
    const next = ask('go on', { previous_response_id: response?.['id'] })
    expect((await client.turn(next)).failure).toMatchObject(notFound)
    client.socket.destroy()
  })
})

describe('a request with generate false', () => {
  const warmUp = (more: object = {}) => ask('long instructions', { generate: false, ...more })

  test('does not call the model, and its input can be continued', async () => {
    const client = await open()
    const requestCount = upstream.requests.length
    const { events, response } = await client.turn(warmUp())
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.completed',
    ])
    expect(response).toMatchObject({ status: 'completed', output: [], usage: null })
    expect(upstream.requests).toHaveLength(requestCount)
    await client.turn(ask('and a question', { previous_response_id: response?.['id'] }))
    expect(lastPrompt().map(({ content }: { content: unknown }) => content)).toEqual([
      'long instructions',
      'and a question',
    ])
    client.socket.destroy()
  })

  test('is stored by default', async () => {
    const client: SocketClient = await open()
    const { response } = await client.turn(warmUp({ store: true }))
    client.socket.destroy()
    const found = await gateway.request(`/v1/responses/${response?.['id']}`)
    expect(await found.json()).toMatchObject({ status: 'completed', output: [] })
  })

  test('is not supported by POST', async () => {
    const requestCount = upstream.requests.length
    await gateway.post('/v1/responses', warmUp())
    expect(upstream.requests).toHaveLength(requestCount + 1)
  })
})
