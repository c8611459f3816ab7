import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { begun, stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import { logOf, readFailure } from '#test/support/refusals.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'

let upstream: ReplayUpstream
let gateway: Gateway

beforeAll(async () => {
  upstream = await upstreamThat({})
  upstream.answer(({ body }) => ({ body: chatAnswer(body) }))
  gateway = await startGateway({
    upstream: [
      { url: upstream.baseUrl, models: ['m'] },
      { name: 'demo', api: 'demo' },
    ],
    model: [{ name: 'embedder', mode: 'embed' }],
  })
})
afterAll(async () => {
  await gateway.stop()
  await stopUpstreams()
})

const hello = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hi.' }] }
const bases = ['/compat/v1/messages', '/compat/messages', '/compat/v1/v1/messages']

describe.each(bases)('%s', (path) => {
  test('returns a message', async () => {
    const httpResponse = await gateway.post(`${path}?beta=true`, hello)
    expect(httpResponse.headers.get('request-id')).toMatch(/^req_\w{26}$/)
    const message = Object(await httpResponse.json())
    expect(message).toMatchObject({
      type: 'message',
      role: 'assistant',
      model: 'm',
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: 'Hello wörld' }],
      usage: { input_tokens: 7, output_tokens: 3 },
    })
    expect(message.id).toMatch(/^msg_/)
  })

  test('returns the same as a stream', async () => {
    const httpResponse = await gateway.post(path, { ...hello, stream: true })
    expect(httpResponse.headers.get('content-type')).toStartWith('text/event-stream')
    expect(httpResponse.headers.get('request-id')).toMatch(/^req_\w{26}$/)
    const wire = await httpResponse.text()
    expect(wire).not.toContain('[DONE]')
    expect(checkMessageStream(wire).message).toMatchObject({
      model: 'm',
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: 'Hello wörld' }],
    })
  })

  test('counts tokens without calling the model', async () => {
    const requestCount = upstream.requests.length
    const { max_tokens: _, ...prompt } = hello
    const httpResponse = await gateway.post(`${path}/count_tokens?beta=true`, prompt)
    expect(await httpResponse.json()).toEqual({ input_tokens: expect.any(Number) })
    const longer = { ...prompt, system: 'You are a demo of many words.' }
    const more = await gateway.post(`${path}/count_tokens`, longer)
    expect(Object(await more.json()).input_tokens).toBeGreaterThan(5)
    expect(upstream.requests.length).toBe(requestCount)
  })
})

describe('the name of a model', () => {
  test.each(['m', 'vendor-model-m', 'm[1m]', 'vendor-model-m[1m]'])(
    'can be %s, and is echoed as sent',
    async (model) => {
      const httpResponse = await gateway.post('/compat/v1/messages', { ...hello, model })
      expect(await httpResponse.json()).toMatchObject({ model, content: [{ text: 'Hello wörld' }] })
      expect(JSON.parse(upstream.requests.at(-1)?.body ?? '').model).toBe('m')
    },
  )

  test.each(['nobody', 'vendor-model-nobody', 'vendor-agent-0198a000-0000-7000-8000-000000000000'])(
    'that is unknown is not found for every client: %s',
    async (model) => {
      for (const path of ['/compat/v1/messages', '/compat/v1/messages/count_tokens']) {
        const failure = await readFailure(await gateway.post(path, { ...hello, model }), gateway)
        const { status, type, message } = failure
        expect([status, type, message]).toEqual([404, 'not_found_error', `model: ${model}`])
      }
    },
  )

  test('must generate text', async () => {
    const body = { ...hello, model: 'embedder' }
    const failure = await readFailure(await gateway.post('/compat/v1/messages', body), gateway)
    expect([failure.status, failure.message]).toEqual([
      400,
      'model: embedder does not generate text',
    ])
  })
})

describe.each([true, false])('a message with max_tokens 0 (stream: %p)', (stream) => {
  test('is empty, counts its input and does not call the model', async () => {
    const requestCount = upstream.requests.length
    const httpResponse = await gateway.post('/compat/v1/messages', {
      ...hello,
      max_tokens: 0,
      stream,
    })
    const message = stream
      ? checkMessageStream(await httpResponse.text()).message
      : await httpResponse.json()
    expect(message).toMatchObject({ content: [], stop_reason: 'max_tokens' })
    const { usage } = Object(message)
    expect(usage.input_tokens).toBeGreaterThan(0)
    expect(usage.output_tokens).toBe(0)
    expect(upstream.requests.length).toBe(requestCount)
  })
})

test('ignored request parts are logged, and the content of the request is not', async () => {
  const upload = { role: 'user', content: [{ type: 'container_upload', file_id: 'file_1' }] }
  const messages = [...hello.messages, upload]
  const httpResponse = await gateway.post('/compat/v1/messages', { ...hello, messages })
  expect(httpResponse.status).toBe(200)
  const lines = logOf(gateway, httpResponse.headers.get('request-id') ?? '')
  expect(lines).toContainEqual(
    expect.objectContaining({
      message: 'request parts ignored',
      parts: ['container_upload'],
    }),
  )
  expect(JSON.stringify(lines)).not.toContain('Hi.')
})

describe('credentials', () => {
  const post = (headers: Record<string, string>) =>
    fetch(`${gateway.url}/compat/v1/messages`, {
      method: 'POST',
      body: JSON.stringify(hello),
      headers: { 'content-type': 'application/json', ...headers },
    })

  test('are an API key in either header, or in both', async () => {
    const created = await gateway.post('/v1/api-keys', { name: 'sdk' })
    const { key } = Object(await created.json())
    const bearer = { authorization: `Bearer ${key}` }
    const foreign = { authorization: 'Bearer sk-ant-oat01-x', 'x-api-key': key }
    for (const headers of [
      bearer,
      { 'x-api-key': key },
      { ...bearer, 'x-api-key': key },
      foreign,
    ]) {
      expect((await post(headers)).status).toBe(200)
    }
  })

  test('can be combined with any version and beta, known or not', async () => {
    const authorization = `Bearer ${await gateway.token()}`
    for (const version of ['2023-06-01', '2026-10-21', '2031-01-01', 'soon', '']) {
      const headers = { 'anthropic-version': version, 'anthropic-beta': 'nobody-knows-2031-01-01' }
      expect((await post({ authorization, ...headers })).status).toBe(200)
    }
  })
})

describe('unsupported paths', () => {
  test.each([
    ['POST', '/compat/v1/complete'],
    ['GET', '/compat/v1/files'],
    ['POST', '/compat/v1/skills'],
    ['POST', '/compat/api/event_logging/batch'],
    ['DELETE', '/compat/x'],
  ])('%s %s is not found, with the error format of the surface', async (method, path) => {
    const failure = await readFailure(await gateway.request(path, { method }), gateway)
    expect([failure.status, failure.type, failure.code]).toEqual([
      404,
      'not_found_error',
      'not_found',
    ])
  })

  test.each([
    ['GET', '/compat/v1/messages', 'POST'],
    ['POST', '/compat', 'GET, HEAD'],
  ])('%s %s names the allowed methods', async (method, path, allowed) => {
    const failure = await readFailure(await gateway.request(path, { method }), gateway)
    expect([failure.status, failure.type]).toEqual([405, 'invalid_request_error'])
    expect(failure.headers.get('allow')).toBe(allowed)
  })

  test('outside the surface have the other error format', async () => {
    const failure = await readFailure(await gateway.request('/compatible'), gateway)
    expect(failure.headers.has('request-id')).toBe(false)
    expect([failure.status, failure.type]).toEqual([404, 'not_found_error'])
  })
})

describe('a probe', () => {
  test.each(['/', '/compat', '/compat/'])('of %s requires no credential', async (path) => {
    for (const method of ['GET', 'HEAD']) {
      const httpResponse = await fetch(gateway.url + path, { method })
      expect(httpResponse.status).toBe(200)
      expect(await httpResponse.text()).toBe(method === 'HEAD' ? '' : '{"status":"ok"}')
    }
  })
})

test('a disconnecting client aborts the upstream request', async () => {
  upstream.answer({ ending: 'hang', body: begun })
  const leaving = new AbortController()
  const before = upstream.connections.aborted
  const httpResponse = await gateway.request('/compat/v1/messages', {
    method: 'POST',
    signal: leaving.signal,
    body: JSON.stringify({ ...hello, stream: true }),
  })
  await httpResponse.body?.getReader().read()
  leaving.abort()
  await upstream.until(({ connections }) => connections.aborted > before)
  upstream.answer(({ body }) => ({ body: chatAnswer(body) }))
  await eventually('nothing runs', () => gateway.deps.inference.running() === 0)
})

describe('the SDK of the vendor', () => {
  const open = async () =>
    new Anthropic({
      baseURL: `${gateway.url}/compat`,
      apiKey: await gateway.token(),
      maxRetries: 0,
    })

  test('returns a message, complete and as a stream, and a count', async () => {
    const client = await open()
    const params = { ...hello, messages: [{ role: 'user' as const, content: 'Hi.' }] }
    const whole = await client.messages.create(params)
    expect(whole.content).toMatchObject([{ type: 'text', text: 'Hello wörld' }])
    expect(whole._request_id).toMatch(/^req_/)
    expect(await client.messages.stream(params).finalText()).toBe('Hello wörld')
    const counted = await client.messages.countTokens({ model: 'm', messages: params.messages })
    expect(counted.input_tokens).toBeGreaterThan(0)
  })

  test('maps the errors of the gateway to its own', async () => {
    const client = await open()
    const requestCount = client.messages.create({ ...hello, model: 'nobody', messages: [] })
    const failure = await requestCount.catch((error: unknown) => error)
    if (!(failure instanceof Anthropic.BadRequestError)) throw failure
    expect(failure.type).toBe('invalid_request_error')
    expect(failure.requestID).toMatch(/^req_/)
    expect(failure.message).toContain('messages: must be a non-empty array of objects')
  })
})
