import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isRecord } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import { sendRaw } from '#test/support/raw-client.ts'
import { chatStream } from '#test/support/recordings.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'
import { contentOfResponse } from '#test/support/response-content.ts'
import { checkStream, readFrames } from '#test/support/response-frames.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Silence, long deltas and characters of every width. */

let upstream: ReplayUpstream
let gateway: Gateway
/** Sends a heartbeat after 20 ms of silence. */
let lively: Gateway

beforeAll(async () => {
  upstream = await upstreamThat({})
  const offers = [
    { url: upstream.baseUrl, models: ['m'] },
    { url: upstream.baseUrl, api: 'responses' as const, models: ['native'] },
  ]
  gateway = await startGateway({ upstream: offers })
  lively = await startGateway({ upstream: offers, stream: { heartbeatMs: 20 } })
})
afterAll(async () => {
  await gateway.stop()
  await lively.stop()
  await stopUpstreams()
})

const ask = (from: Gateway, model: string, stream = true) =>
  from.post('/v1/responses', { model, input: 'x', stream })
const call = (text: string, first = false) => ({
  tool_calls: [
    { index: 0, ...(first ? { id: 'a' } : {}), function: { name: 'get', arguments: text } },
  ],
})
const native = (...payloads: object[]) =>
  payloads.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join('')
const search = { type: 'web_search_call', id: 'ws', status: 'in_progress' }
const found = { ...search, status: 'completed', action: { type: 'search', query: 'x' } }

/** Each is silent before, inside and between its items. */
const silences = [
  {
    what: 'a text',
    model: 'm',
    body: chatStream([chunk({ content: 'one ' }), chunk({ content: 'two' }), chunk({}, 'stop')]),
  },
  {
    what: 'a refusal',
    model: 'm',
    body: chatStream([
      chunk({ refusal: 'I will ' }),
      chunk({ refusal: 'not.' }),
      chunk({}, 'stop'),
    ]),
  },
  {
    what: 'reasoning and a text',
    model: 'm',
    body: chatStream([
      chunk({ reasoning_content: 'Hm, ' }),
      chunk({ reasoning_content: 'yes.' }),
      chunk({ content: 'Yes.' }),
      chunk({}, 'stop'),
    ]),
  },
  {
    what: 'a text and a tool call',
    model: 'm',
    body: chatStream([
      chunk({ content: 'Now:' }),
      chunk(call('{"city":', true)),
      chunk(call('"Oslo"}')),
      chunk({}, 'tool_calls'),
    ]),
  },
  {
    what: 'a hosted tool and a text',
    model: 'native',
    body: native(
      { type: 'response.created', response: { id: 'x', status: 'in_progress' } },
      { type: 'response.output_item.added', output_index: 0, item: search },
      { type: 'response.web_search_call.searching', output_index: 0, item_id: 'ws' },
      { type: 'response.output_item.done', output_index: 0, item: found },
      { type: 'response.output_text.delta', output_index: 1, item_id: 'm', delta: 'one ' },
      { type: 'response.output_text.delta', output_index: 1, item_id: 'm', delta: 'two' },
      { type: 'response.completed', response: { id: 'x', status: 'completed' } },
    ),
  },
]

test('a stream has its content type, and no frame is split over two writes', async () => {
  const words = Array.from({ length: 200 }, (_, at) => chunk({ content: `word ${at} ` }))
  const body = chatStream([...words, chunk({}, 'stop')])
  const cutsAt = Array.from({ length: Math.floor(body.length / 37) }, (_, at) => at * 37)
  upstream.answer({ body, cutsAt })
  const { headers } = await ask(gateway, 'm')
  expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(headers.get('cache-control')).toBe('no-cache, no-transform')
  expect(headers.get('x-accel-buffering')).toBe('no')
  expect(headers.get('x-request-id')).toMatch(/^req_/)
  const question = { model: 'm', input: 'x', stream: true }
  const { port } = gateway
  const client = sendRaw({ port, token: await gateway.token(), body: question })
  const chunks = await client.chunks()
  expect(chunks.length).toBeGreaterThan(10)
  expect(chunks.filter((piece) => !piece.endsWith('\n\n'))).toEqual([])
})

describe('an upstream with repeated silences', () => {
  const eventEnds = (body: string) => [...body.matchAll(/\n\n/g)].map(({ index }) => index + 2)
  /** The upstream is silent until the client has received another heartbeat. */
  function answerBetweenBeats(body: string, beats: () => number, isOver: () => boolean) {
    const nextPiece = () => {
      // The first one is the beginning of every stream.
      const seen = Math.max(beats(), 1)
      return eventually('another heartbeat', () => beats() > seen || isOver())
    }
    upstream.answer({ body, cutsAt: [1, ...eventEnds(body)], nextPiece })
  }

  test.each(silences)('in $what', async ({ model, body }) => {
    upstream.answer({ body })
    const unhurried = checkStream(await (await ask(gateway, model)).text())
    let text = ''
    let isOver = false
    const beats = () => text.split('event: response.in_progress').length - 1
    answerBetweenBeats(body, beats, () => isOver)
    const { body: stream } = await ask(lively, model)
    for await (const part of stream?.pipeThrough(new TextDecoderStream()) ?? []) text += part
    isOver = true
    const { response } = checkStream(text)
    expect(beats()).toBeGreaterThan(3)
    expect(contentOfResponse(response)).toEqual(contentOfResponse(unhurried.response))
  })

  test.each(silences)('in $what, and the openai package continues', async ({ model, body }) => {
    let beats = 0
    let isOver = false
    const current = () => beats
    answerBetweenBeats(body, current, () => isOver)
    const client = await lively.openai()
    const stream = client.responses.stream({ model, input: 'x' })
    stream.on('response.in_progress', () => {
      beats++
    })
    const final: unknown = await stream.finalResponse()
    isOver = true
    if (!isRecord(final)) throw new Error('no response')
    expect(beats).toBeGreaterThan(3)
    const answered: unknown = await (await ask(lively, model, false)).json()
    if (!isRecord(answered)) throw new Error('no response')
    expect(contentOfResponse(final)).toEqual(contentOfResponse(answered))
  })

  test('a stream is open before the first event', async () => {
    upstream.answer({ body: ': wait\n\n', ending: 'hang' })
    const leaving = new AbortController()
    const answer = await lively.request('/v1/responses', {
      method: 'POST',
      body: JSON.stringify({ model: 'm', input: 'x', stream: true, store: false }),
      signal: leaving.signal,
    })
    expect(answer.status).toBe(200)
    const { value } = (await answer.body?.getReader().read()) ?? {}
    expect(Buffer.from(value ?? []).toString()).toStartWith('event: response.created\n')
    leaving.abort()
    await upstream.until(({ connections }) => connections.open === 0)
  })
})

describe('characters', () => {
  const text = 'naïve – 日本語 – 👩‍👩‍👧‍👦 – \u0085\u2028\u2029 – \u0000 – "\\\r\n'
  const body = chatStream(
    [...text].map((sign) => chunk({ content: sign })).concat(chunk({}, 'stop')),
  )

  test('of every width arrive unchanged, wherever reads split them', async () => {
    const bytes = Buffer.from(body)
    for (const width of [1, 2, 3, 5, 7]) {
      const cutsAt = Array.from(
        { length: Math.ceil(bytes.length / width) - 1 },
        (_, at) => (at + 1) * width,
      )
      upstream.answer({ body: bytes, cutsAt })
      const { response } = checkStream(await (await ask(gateway, 'm')).text())
      expect(contentOfResponse(response).text).toBe(text)
    }
  })

  test('that some clients treat as line ends are never sent', async () => {
    upstream.answer({ body })
    const wire = await (await ask(gateway, 'm')).text()
    expect(wire.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u)
  })

  test('that an upstream splits between two deltas are joined', async () => {
    const [high, low] = ['\ud83d', '\ude00']
    upstream.answer({
      body: chatStream(
        [high, low].map((half) => chunk({ content: half })).concat(chunk({}, 'stop')),
      ),
    })
    const { response } = checkStream(await (await ask(gateway, 'm')).text())
    expect(contentOfResponse(response).text).toBe('😀')
  })

  test('are unchanged in the arguments of a call', async () => {
    const input = JSON.stringify({ text })
    const pieces = [...input].map((sign, at) => chunk(call(sign, at === 0)))
    upstream.answer({ body: chatStream([...pieces, chunk({}, 'tool_calls')]) })
    const { response } = checkStream(await (await ask(gateway, 'm')).text())
    expect(contentOfResponse(response).calls).toEqual([{ name: 'get', input }])
  })
})

describe('length', () => {
  const megabyte = 1_048_576

  test.each([
    ['a response of 6 MB in one piece', 1, 6 * megabyte],
    ['a response of 4 MB in 4,096 pieces', 4_096, 1_024],
  ])('%s', async (_what, pieces, charsEach) => {
    const deltas = Array.from({ length: pieces }, (_, at) =>
      chunk({ content: String(at % 10).repeat(charsEach) }),
    )
    upstream.answer({ body: chatStream([...deltas, chunk({}, 'stop')]) })
    const { response } = checkStream(await (await ask(gateway, 'm')).text())
    expect(contentOfResponse(response).text.length).toBe(pieces * charsEach)
    const answered: unknown = await (await ask(gateway, 'm', false)).json()
    expect(isRecord(answered) && contentOfResponse(answered).text.length).toBe(pieces * charsEach)
  })

  test.each([
    ['in one piece', 1],
    ['in 1,024 pieces', 1_024],
  ])('arguments of 1 MB %s', async (_what, count) => {
    const input = JSON.stringify({ text: 'a'.repeat(megabyte) })
    const size = Math.ceil(input.length / count)
    const deltas = Array.from({ length: count }, (_, at) =>
      chunk(call(input.slice(at * size, (at + 1) * size), at === 0)),
    )
    upstream.answer({ body: chatStream([...deltas, chunk({}, 'tool_calls')]) })
    const { response } = checkStream(await (await ask(gateway, 'm')).text())
    expect(contentOfResponse(response).calls[0]?.input).toBe(input)
  })

  test('an event over the limit is a failure, not a crash', async () => {
    const strict = await startGateway({
      upstream: [{ url: upstream.baseUrl, models: ['m'] }],
      limits: { eventBytesMax: 65_536, toolArgumentCharsMax: 2_048 },
    })
    upstream.answer({ body: chatStream([chunk({ content: 'x'.repeat(100_000) })]) })
    expect((await ask(strict, 'm')).status).toBe(502)
    upstream.answer({
      body: chatStream([chunk(call('{"a":"', true)), chunk(call('x'.repeat(4_096)))]),
    })
    const frames = readFrames(await (await ask(strict, 'm')).text())
    expect(frames.at(-1)).toMatchObject({ type: 'response.failed' })
    await strict.stop()
  })
})
