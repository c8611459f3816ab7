import { afterAll, describe, expect, test } from 'bun:test'
import type { GenerationEvent, RelayFrame } from '#inference/events.ts'
import type { GenerationRequest, RequestOrigin } from '#inference/request.ts'
import type { AdapterContext, Upstream } from '#inference/upstream.ts'
import { messages } from '#inference/upstreams/messages/adapter.ts'
import { type AppError, toAppError } from '#lib/errors.ts'
import { blocksOf, sseOf } from '#test/inference/upstreams/responses/decoding.ts'
import { defaultQuirks, makeContext, makeRequest } from '#test/support/generation.ts'
import { checkEvents } from '#test/support/grammar.ts'
import { startReplayUpstream } from '#test/support/replay-upstream.ts'
import { errorAnswer } from '#test/support/strict-messages-upstream.ts'
import {
  blockStart,
  decode,
  hello,
  inputDelta,
  messageDelta,
  messageStart,
  messageStop,
  text,
} from './decoding.ts'

const replay = await startReplayUpstream({ body: '' })
afterAll(() => replay.stop())

const json = { 'content-type': 'application/json' }
const origin: RequestOrigin = {
  protocol: 'messages',
  body: { model: 'ours', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] },
  headers: {},
  openSeal: () => null,
}

function contextOf(given: Partial<Upstream> = {}): AdapterContext {
  const context = makeContext({ model: 'model-there' })
  const upstream = { ...context.upstream, kind: 'messages' as const, baseUrl: replay.baseUrl }
  return { ...context, upstream: { ...upstream, ...given } }
}

async function generate(request: GenerationRequest = makeRequest(), given: Partial<Upstream> = {}) {
  const events: GenerationEvent[] = []
  const frames: RelayFrame[] = []
  let error: AppError | null = null
  try {
    for await (const batch of checkEvents(messages.generate(request, contextOf(given)))) {
      events.push(...batch)
      frames.push(...(batch.relay?.frames ?? []))
    }
  } catch (thrown) {
    error = toAppError(thrown)
  }
  return { events, frames, error, sent: replay.requests.at(-1) }
}

describe('a request', () => {
  test('is posted to /v1/messages, and the response decoded to events', async () => {
    replay.answer({ body: sseOf(hello) })
    const { events, frames, error, sent } = await generate()
    expect(error).toBeNull()
    expect(events).toEqual(decode(hello).events)
    expect(frames).toEqual([])
    expect(sent).toMatchObject({ method: 'POST', path: '/v1/messages' })
    expect(sent?.headers).toMatchObject({
      'x-api-key': 'a-secret',
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
      accept: 'text/event-stream',
    })
    expect(sent?.headers).not.toHaveProperty('authorization')
    expect(JSON.parse(sent?.body ?? '')).toMatchObject({ model: 'model-there', stream: true })
  })

  test('uses the same path for base URLs without a version or with a path', async () => {
    replay.answer({ body: sseOf(hello) })
    const host = replay.baseUrl.slice(0, -'/v1'.length)
    expect((await generate(makeRequest(), { baseUrl: host })).sent?.path).toBe('/v1/messages')
    const { sent } = await generate(makeRequest(), { baseUrl: `${host}/door` })
    expect(sent?.path).toBe('/door/v1/messages')
  })

  test('carries the credential in the configured header', async () => {
    replay.answer({ body: sseOf(hello) })
    const bearer = { quirks: { ...defaultQuirks, keyHeader: 'authorization' as const } }
    const { sent } = await generate(makeRequest(), bearer)
    expect(sent?.headers).toMatchObject({ authorization: 'Bearer a-secret' })
    expect(sent?.headers).not.toHaveProperty('x-api-key')
    const open = await generate(makeRequest(), { key: undefined })
    expect(open.sent?.headers).not.toHaveProperty('x-api-key')
  })

  test('of the same protocol keeps its body and version but not its credential', async () => {
    replay.answer({ body: sseOf(hello) })
    const headers = {
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'one,two',
      'x-claude-code-session-id': 's1',
      'x-api-key': 'of-the-caller',
      'x-team': 'theirs',
    }
    const configured = { 'X-Team': 'ours', 'Anthropic-Beta': 'zero' }
    const request = makeRequest({ origin: { ...origin, headers } })
    const { frames, events, sent } = await generate(request, { headers: configured })
    expect(sent?.headers).toMatchObject({
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'zero,one,two',
      'x-claude-code-session-id': 's1',
      'x-api-key': 'a-secret',
      'x-team': 'ours',
    })
    expect(JSON.parse(sent?.body ?? '')).toEqual({
      ...origin.body,
      model: 'model-there',
      stream: true,
    })
    expect(events).toEqual(decode(hello).events)
    expect(frames.map(({ payload }) => payload)).toEqual(hello)
  })
})

test('of a relayed request are not validated', async () => {
  const call = { type: 'tool_use', id: 'toolu_1', name: 'bash', input: {} }
  replay.answer({
    body: sseOf([
      messageStart,
      blockStart(call),
      inputDelta('{}'),
      messageDelta('tool_use'),
      messageStop,
    ]),
  })
  const toolChoice = { type: 'tool', form: 'function', name: 'bash' } as const
  const { events, error } = await generate(makeRequest({ origin, toolChoice }))
  expect(error).toBeNull()
  expect(blocksOf({ events })).toEqual([{ call: 'bash', id: 'toolu_1', input: '{}' }])
  expect((await generate(makeRequest({ toolChoice }))).error?.kind).toBe('invalid_request')
  const none = { type: 'none' } as const
  expect((await generate(makeRequest({ toolChoice: none }))).error?.kind).toBe(
    'upstream_invalid_answer',
  )
})

describe('a response', () => {
  test('in small pieces carries the frames with its events', async () => {
    const body = sseOf(hello)
    const cutsAt = Array.from({ length: 30 }, (_, at) => (at + 1) * 20)
    replay.answer({ body, cutsAt })
    const { events, frames } = await generate(makeRequest({ origin }))
    expect(blocksOf({ events })).toEqual([{ text: 'Hello' }])
    expect(frames.map(({ payload }) => payload)).toEqual(hello)
  })

  test('that is not streamed yields the same events', async () => {
    const message = { ...messageStart.message, content: [{ type: 'text', text: 'Hi' }] }
    const body = JSON.stringify({ ...message, stop_reason: 'end_turn' })
    replay.answer({ body, headers: json })
    const { events, error, frames } = await generate(makeRequest({ origin }))
    expect(error).toBeNull()
    expect(blocksOf({ events })).toEqual([{ text: 'Hi' }])
    expect(frames).toHaveLength(6)
  })

  test('that ends early is truncated after its content', async () => {
    replay.answer({ body: sseOf(hello.slice(0, 3)) })
    const { events, error, frames } = await generate(makeRequest({ origin }))
    expect(error?.kind).toBe('upstream_truncated')
    expect(blocksOf({ events })).toEqual([{ text: 'Hello' }])
    expect(frames).toHaveLength(3)
  })

  test('the consumer stops ends the connection', async () => {
    replay.answer({ body: sseOf([...hello.slice(0, 3), text('!')]), ending: 'hang' })
    const before = replay.connections.aborted
    for await (const batch of messages.generate(makeRequest(), contextOf())) {
      if (batch.some(({ type }) => type === 'text-delta')) break
    }
    await replay.until(({ connections }) => connections.aborted > before)
    expect(replay.connections.aborted).toBe(before + 1)
  })
})

describe('an error response', () => {
  const failing = async (answer: ReturnType<typeof errorAnswer>, relayed: boolean) => {
    replay.answer(answer)
    return (await generate(makeRequest(relayed ? { origin } : {}))).error
  }

  test.each([
    [400, 'invalid_request_error', 'invalid_request'],
    [402, 'billing_error', 'insufficient_quota'],
    [404, 'not_found_error', 'upstream_refused'],
    [413, 'request_too_large', 'request_too_large'],
    [429, 'rate_limit_error', 'rate_limit_exceeded'],
    [500, 'api_error', 'upstream_error'],
    [504, 'timeout_error', 'upstream_error'],
    [529, 'overloaded_error', 'upstream_overloaded'],
  ] as const)(
    '%d %s goes on as it came to a caller of the protocol',
    async (status, type, kind) => {
      const answer = errorAnswer(status, type, 'Said so.')
      const contentType = 'application/json'
      expect(await failing(answer, true)).toMatchObject({
        kind,
        message: 'Said so.',
        relay: { status, body: answer.body, contentType },
      })
      const failure = await failing(answer, false)
      expect(failure).toMatchObject({ kind, message: 'Said so.' })
      expect(failure?.relay).toBeUndefined()
    },
  )

  test.each([401, 403])('%d is our credential, so its message is not relayed', async (status) => {
    const error = await failing(errorAnswer(status, 'authentication_error', 'bad key'), true)
    expect(error?.kind).toBe('upstream_refused')
    expect(error?.message).not.toContain('bad key')
    expect(error?.relay).toBeUndefined()
  })

  test('is relayed without internal data of the gateway', async () => {
    const said = `the key a-secret of ${replay.baseUrl}/messages`
    const error = await failing(errorAnswer(400, 'invalid_request_error', said), true)
    expect(error?.message).toBe('the key [hidden] of [hidden]/messages')
    expect(error?.relay?.body).toContain('the key [hidden] of [hidden]/messages')
  })

  test('inside a stream as well', async () => {
    const failure = { type: 'error', error: { type: 'api_error', message: 'lost a-secret' } }
    replay.answer({ body: sseOf([messageStart, failure]) })
    const { error } = await generate(makeRequest({ origin }))
    expect(error?.message).toBe('lost [hidden]')
    expect(error?.relay).toMatchObject({ status: 500 })
    expect(error?.relay?.body).toContain('lost [hidden]')
  })

  test("outside the protocol is reported by Sluice's own error", async () => {
    const page = { status: 502, headers: { 'content-type': 'text/html' }, body: '<html>' }
    expect((await failing(page, true))?.relay).toBeUndefined()
    const other = { status: 500, headers: json, body: '{"detail":"down"}' }
    const error = await failing(other, true)
    expect(error).toMatchObject({ kind: 'upstream_error', message: 'down' })
    expect(error?.relay).toBeUndefined()
  })

  test.each([
    'prompt is too long: 9 tokens > 8 maximum',
    'input length and `max_tokens` exceed context limit: 9 + 1 > 8',
  ])('%p is a context that is full', async (message) => {
    const answer = errorAnswer(400, 'invalid_request_error', message)
    expect((await failing(answer, false))?.kind).toBe('context_length_exceeded')
  })
})

describe('the models of an upstream', () => {
  const list = () => messages.listModels(contextOf())

  test('are read page by page', async () => {
    const pages = new Map([
      [null, { data: [{ id: 'a', type: 'model' }], has_more: true, last_id: 'a' }],
      ['a', { data: [{ id: 'b', type: 'model' }], has_more: false, last_id: 'b' }],
    ])
    const asked: string[] = []
    replay.answer(({ path }) => {
      asked.push(path)
      const after = new URL(path, 'http://x').searchParams.get('after_id')
      return { headers: json, body: JSON.stringify(pages.get(after) ?? {}) }
    })
    expect((await list()).map(({ id }) => id)).toEqual(['a', 'b'])
    expect(asked).toEqual(['/v1/models?limit=1000', '/v1/models?limit=1000&after_id=a'])
    expect(replay.requests.at(-1)?.headers).toMatchObject({
      'x-api-key': 'a-secret',
      'anthropic-version': '2023-06-01',
    })
  })

  test('include creation time and context size, in both list formats', async () => {
    const data = [
      { id: 'a', created_at: '2026-02-03T00:00:00Z', max_input_tokens: 200_000 },
      { id: 'b', created_at: '1970-01-01T00:00:00Z', max_input_tokens: null },
      { id: 'c', created: 1_700_000_000, owned_by: 'vllm', max_model_len: 8_192 },
    ]
    replay.answer({ headers: json, body: JSON.stringify({ data }) })
    expect(await list()).toEqual([
      { id: 'a', created: 1_770_076_800, ownedBy: null, contextWindow: 200_000 },
      { id: 'b', created: null, ownedBy: null, contextWindow: null },
      { id: 'c', created: 1_700_000_000, ownedBy: 'vllm', contextWindow: 8_192 },
    ])
  })

  test('a model list with a repeated or endless cursor is read up to the limit', async () => {
    const same = { data: [{ id: 'a' }], has_more: true, last_id: 'a' }
    replay.answer({ headers: json, body: JSON.stringify(same) })
    expect((await list()).map(({ id }) => id)).toEqual(['a'])
    let page = 0
    replay.answer(() => {
      const id = `m${++page}`
      return { headers: json, body: JSON.stringify({ ...same, data: [{ id }], last_id: id }) }
    })
    expect(await list()).toHaveLength(10)
  })
})
