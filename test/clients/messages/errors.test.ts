import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { eventually } from '#test/support/eventually.ts'
import {
  type MessageClients,
  messageKinds,
  scriptedAnswer,
  sdks,
  startMessageClients,
} from '#test/support/message-clients.ts'
import type { ReplayAnswer } from '#test/support/replay-upstream.ts'
import { errorAnswer } from '#test/support/strict-messages-upstream.ts'
import { unfinishedResponse } from '#test/support/unfinished-response.ts'

/** Failures in the `@anthropic-ai/sdk` package, in each of its dialects. */

let world: MessageClients
beforeAll(async () => {
  const limits = { requestBytesMax: 10_000 }
  world = await startMessageClients({ retry: { retriesMax: 0 }, limits })
})
afterAll(() => world.stop())
afterEach(() => world.upstream.answer(scriptedAnswer))

const hello = { max_tokens: 100, messages: [{ role: 'user' as const, content: 'Say hello.' }] }
const json = { 'content-type': 'application/json' }
const upstreams = messageKinds.filter(({ kind }) => kind !== 'demo')
const matrix = sdks.flatMap((row) => upstreams.map((kind) => ({ ...row, ...kind })))

/** The failures of a streamed and of a complete request. */
async function failures(client: Anthropic, params: Anthropic.MessageCreateParamsNonStreaming) {
  const whole = await client.messages.create(params).catch((error) => error)
  const streamed = await client.messages
    .stream(params)
    .finalMessage()
    .catch((error) => error)
  return [whole, streamed]
}

const errorBody = (type: string, message: string) => String(errorAnswer(400, type, message).body)
const openAiError = (type: string, message: string, code: string | null = null) =>
  JSON.stringify({ error: { message, type, param: null, code } })

describe.each(sdks)('the package $sdk', ({ Sdk }) => {
  test('reports an invalid API key', async () => {
    const client = world.client(Sdk, { apiKey: 'sk-svc-v1-nothing' })
    for (const failure of await failures(client, { model: 'demo-fast', ...hello })) {
      expect(failure).toBeInstanceOf(Sdk.AuthenticationError)
      expect(failure.requestID).toMatch(/^req_/)
      expect(failure.error.error.type).toBe('authentication_error')
    }
  })

  test('reports a missing permission', async () => {
    const authToken = await world.gateway.token(['nobody'], 'stranger')
    const client = world.client(Sdk, { apiKey: null, authToken })
    for (const failure of await failures(client, { model: 'demo-fast', ...hello })) {
      expect(failure).toBeInstanceOf(Sdk.PermissionDeniedError)
      expect(failure.error.error.type).toBe('permission_error')
    }
  })

  test('reports an unknown model', async () => {
    const client = world.client(Sdk)
    const params = { model: 'nope', ...hello }
    const { max_tokens: _, ...counted } = params
    const errorResponses = [
      ...(await failures(client, params)),
      await client.messages.countTokens(counted).catch((error) => error),
      await client.models.retrieve('nope').catch((error) => error),
    ]
    for (const failure of errorResponses) {
      expect(failure).toBeInstanceOf(Sdk.NotFoundError)
      expect(failure.error.error.type).toBe('not_found_error')
      expect(failure.message).toContain('nope')
    }
  })

  test('reports an unknown endpoint', async () => {
    const client = world.client(Sdk)
    const requests = [
      () => client.beta.files.list(),
      () => client.post('/v1/complete', { body: { prompt: 'x' } }),
      () => client.post('/api/event_logging/batch', { body: {} }),
    ]
    for (const ask of requests) {
      const failure = await ask().then(String, (error: unknown) => error)
      expect(failure).toBeInstanceOf(Sdk.NotFoundError)
    }
  })

  test('reports a request that is too large', async () => {
    const content = 'x'.repeat(20_000)
    const params = { ...hello, model: 'demo', messages: [{ role: 'user' as const, content }] }
    for (const failure of await failures(world.client(Sdk), params)) {
      expect(failure.status).toBe(413)
      expect(failure.error.error.type).toBe('request_too_large')
    }
  })

  test('reports the failures of the demo before and after the first token', async () => {
    const [before] = await failures(world.client(Sdk), { model: 'demo-fail', ...hello })
    expect(before).toBeInstanceOf(Sdk.InternalServerError)
    const stream = world.client(Sdk).messages.stream({ model: 'demo-fail-midway', ...hello })
    let text = ''
    stream.on('text', (piece) => {
      text += piece
    })
    const midway = await stream.finalMessage().catch((error) => error)
    expect(text).toStartWith('These words arrive')
    expect(midway).toBeInstanceOf(Sdk.APIError)
    expect(midway.error.error.type).toBe('api_error')
    expect(midway.message).toContain('as requested')
  })

  test('retries retryable errors', async () => {
    const client = world.client(Sdk, { maxRetries: 1 })
    let busy = true
    world.upstream.answer((request) => {
      if (!busy) return scriptedAnswer(request)
      busy = false
      return { status: 503, headers: json, body: openAiError('server_error', 'Busy.') }
    })
    const before = world.asks()
    const message = await client.messages.create({ model: 'chat', ...hello })
    expect(message.stop_reason).toBe('end_turn')
    expect(world.asks() - before).toBe(2)
  })
})

const errorOf: Record<string, (type: string, message: string) => string> = {
  chat: openAiError,
  responses: openAiError,
  messages: errorBody,
}

describe.each(matrix)('the package $sdk over a $kind upstream', ({ sdk, Sdk, kind, model }) => {
  let client: Anthropic
  beforeAll(() => {
    client = world.client(Sdk)
  })
  const answerWith = (answer: ReplayAnswer) => world.upstream.answer({ headers: json, ...answer })
  const body = (type: string, message: string) => errorOf[kind]?.(type, message) ?? ''

  test('reports the message of the upstream for an invalid request', async () => {
    answerWith({ status: 400, body: body('invalid_request_error', 'This form is not known.') })
    for (const failure of await failures(client, { model, ...hello })) {
      expect(failure).toBeInstanceOf(Sdk.BadRequestError)
      expect(failure.error.error.type).toBe('invalid_request_error')
      expect(failure.error.error.message).toContain('This form is not known.')
      expect(failure.requestID).toMatch(/^req_/)
      if (kind === 'messages') {
        expect(failure.error).toEqual(
          JSON.parse(errorBody('invalid_request_error', 'This form is not known.')),
        )
      }
    }
  })

  test('waits as long as the rate limit of the upstream requires', async () => {
    const headers = { ...json, 'retry-after': '7' }
    answerWith({ status: 429, headers, body: body('rate_limit_error', 'Slow down.') })
    for (const failure of await failures(client, { model, ...hello })) {
      expect(failure).toBeInstanceOf(Sdk.RateLimitError)
      expect(failure.error.error.type).toBe('rate_limit_error')
      expect(failure.headers.get('retry-after')).toBe('7')
    }
  })

  test('reports an overloaded upstream', async () => {
    const status = kind === 'messages' ? 529 : 503
    answerWith({ status, body: body('overloaded_error', 'Overloaded.') })
    for (const failure of await failures(client, { model, ...hello })) {
      expect(failure).toBeInstanceOf(
        sdk === '0.137' ? Sdk.InternalServerError : Anthropic.OverloadedError,
      )
      expect(failure.status).toBe(529)
      expect(failure.error.error.type).toBe('overloaded_error')
    }
  })

  test('does not confuse the credential of the gateway with its own', async () => {
    answerWith({
      status: 401,
      body: body('authentication_error', 'Your key sk-1234567890 is bad.'),
    })
    for (const failure of await failures(client, { model, ...hello })) {
      expect(failure).toBeInstanceOf(Sdk.InternalServerError)
      expect(failure.message).not.toContain('sk-1234567890')
    }
  })

  test('reports a context that is too long with the message that clients parse', async () => {
    const messages: Record<string, string> = {
      chat: openAiError(
        'invalid_request_error',
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        'context_length_exceeded',
      ),
      responses: openAiError(
        'invalid_request_error',
        'Your input exceeds the context window of this model.',
        'context_length_exceeded',
      ),
      messages: errorBody(
        'invalid_request_error',
        'prompt is too long: 5000 tokens > 4096 maximum',
      ),
    }
    answerWith({ status: 400, body: messages[kind] ?? '' })
    for (const failure of await failures(client, { model, ...hello })) {
      expect(failure).toBeInstanceOf(Sdk.BadRequestError)
      expect(failure.error.error.message).toStartWith('prompt is too long')
      if (kind !== 'responses') {
        expect(failure.error.error.message).toBe('prompt is too long: 5000 tokens > 4096 maximum')
      }
    }
  })

  test('reports the error page of a proxy as an upstream failure', async () => {
    answerWith({
      status: 502,
      headers: { 'content-type': 'text/html' },
      body: '<h1>Bad gateway</h1>',
    })
    for (const failure of await failures(client, { model, ...hello })) {
      expect(failure).toBeInstanceOf(Sdk.InternalServerError)
      expect(failure.error.error.type).toBe('api_error')
    }
  })

  test('keeps the output before the upstream disconnected, and reports the failure', async () => {
    world.upstream.answer({ ...unfinishedResponse(kind), ending: 'cut' })
    const stream = client.messages.stream({ model, ...hello })
    const failure = await stream.finalMessage().catch((error) => error)
    expect(failure).toBeInstanceOf(Sdk.APIError)
    expect(failure.error.error.type).toBe('api_error')
    const partial = stream.currentMessage?.content[0]
    expect(partial?.type === 'text' && partial.text).toBe('Quiet ')
  })

  test('aborts the upstream request when it aborts a stream', async () => {
    world.upstream.answer(unfinishedResponse(kind))
    const { aborted } = world.upstream.connections
    const stream = client.messages.stream({ model, ...hello })
    stream.on('text', () => stream.abort())
    const failure = await stream.finalMessage().catch((error) => error)
    expect(failure).toBeInstanceOf(Sdk.APIUserAbortError)
    await world.upstream.until(({ connections }) => connections.aborted > aborted)
    await eventually('it is over', () => world.gateway.deps.inference.running() === 0)
  })

  test('aborts the upstream request when it breaks out of the event loop', async () => {
    world.upstream.answer(unfinishedResponse(kind))
    const { aborted } = world.upstream.connections
    const events = await client.messages.create({ model, ...hello, stream: true })
    for await (const { type } of events) if (type === 'content_block_delta') break
    await world.upstream.until(({ connections }) => connections.aborted > aborted)
    await eventually('it is over', () => world.gateway.deps.inference.running() === 0)
  })

  test('aborts the upstream request when it aborts the request', async () => {
    world.upstream.answer({ ending: 'silent' })
    const { aborted } = world.upstream.connections
    const before = world.asks()
    const giveUp = new AbortController()
    const request = client.messages.create({ model, ...hello }, { signal: giveUp.signal })
    const failed = request.catch((error) => error)
    await world.upstream.until(() => world.asks() > before)
    giveUp.abort()
    expect(await failed).toBeInstanceOf(Sdk.APIUserAbortError)
    await world.upstream.until(({ connections }) => connections.aborted > aborted)
    await eventually('it is over', () => world.gateway.deps.inference.running() === 0)
  })
})
