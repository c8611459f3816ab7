import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import {
  type MessageClients,
  sdkMatrix,
  sdks,
  startMessageClients,
} from '#test/support/message-clients.ts'

/** Plain text in the `@anthropic-ai/sdk` package, in each of its dialects. */

let world: MessageClients
beforeAll(async () => {
  world = await startMessageClients()
})
afterAll(() => world.stop())

const hello = { max_tokens: 100, messages: [{ role: 'user' as const, content: 'Say hello.' }] }

describe.each(sdkMatrix)('the package $sdk over a $kind upstream', ({ Sdk, kind, model }) => {
  let client: Anthropic
  beforeAll(() => {
    client = world.client(Sdk)
  })

  test('returns a message and its usage', async () => {
    const message = await client.messages.create({ model, ...hello })
    const [text] = message.content
    expect(message.content).toHaveLength(1)
    expect(text?.type === 'text' && text.text).toContain('ello')
    expect(message).toMatchObject({ model, role: 'assistant', type: 'message' })
    expect([message.stop_reason, message.stop_sequence]).toEqual(['end_turn', null])
    expect(message.usage.input_tokens).toBeGreaterThan(0)
    expect(message.usage.output_tokens).toBeGreaterThan(0)
    expect(message._request_id).toMatch(/^req_/)
  })

  test('returns the same as a stream of pieces', async () => {
    const whole = await client.messages.create({ model, ...hello })
    const stream = client.messages.stream({ model, ...hello })
    const pieces: string[] = []
    const blocks: object[] = []
    stream.on('text', (piece) => pieces.push(piece))
    stream.on('contentBlock', (block) => blocks.push(block))
    const message = await stream.finalMessage()
    expect(pieces.length).toBeGreaterThan(1)
    expect(pieces.join('')).toBe(await stream.finalText())
    expect<unknown>(blocks).toEqual(message.content)
    expect<unknown>(message.content).toEqual(whole.content)
    expect(message.stop_reason).toBe(whole.stop_reason)
    expect(message.usage).toMatchObject({
      input_tokens: whole.usage.input_tokens,
      output_tokens: whole.usage.output_tokens,
    })
    expect(stream.request_id).toMatch(/^req_/)
  })

  test('returns raw events', async () => {
    const events = await client.messages.create({ model, ...hello, stream: true })
    const types = (await Array.fromAsync(events)).map(({ type }) => type)
    const once = types.filter((type, at) => type !== types[at - 1])
    expect(once).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
  })

  test('supports the beta namespace as well', async () => {
    const params = { model, ...hello, betas: ['context-1m-2025-08-07', 'never-heard-of'] }
    const message = await client.beta.messages.create(params)
    const streamed = await client.beta.messages.stream(params).finalMessage()
    expect(message.content[0]?.type === 'text' && message.content[0].text).toContain('ello')
    expect(streamed.content).toMatchObject(message.content)
  })

  test('sends earlier turns and instructions', async () => {
    const introduction = 'My name is Ada and I like the sea and the wind.'
    const { content, usage } = await client.messages.create({
      model,
      max_tokens: 500,
      system: [{ type: 'text', text: 'Be kind.' }],
      messages: [
        { role: 'user', content: introduction },
        { role: 'assistant', content: [{ type: 'text', text: 'Hello Ada.' }] },
        { role: 'system', content: 'Be brief from now on.' },
        { role: 'user', content: 'recall it' },
      ],
    })
    const all = ['Be kind.', introduction, 'Hello Ada.', 'Be brief from now on.']
    const text = content[0]?.type === 'text' ? content[0].text : ''
    if (kind === 'demo') {
      expect(usage.input_tokens).toBeGreaterThan(all.join(' ').split(' ').length)
    } else if (kind === 'responses' || kind === 'messages') {
      for (const part of all.slice(1)) expect(text).toContain(part)
      expect(JSON.stringify(world.asked())).toContain('Be kind.')
    } else {
      for (const part of all) expect(text).toContain(part)
    }
  })

  test('reports output that was cut off at max_tokens', async () => {
    if (kind === 'demo') {
      const message = await client.messages.create({ ...hello, model, max_tokens: 2 })
      expect(message.stop_reason).toBe('max_tokens')
      expect(message.usage.output_tokens).toBe(2)
    } else {
      await client.messages.create({ ...hello, model, max_tokens: 17 })
      const { max_tokens: chat, max_output_tokens: responses } = world.asked()
      expect(chat ?? responses).toBe(17)
    }
  })

  // A native upstream decides itself what it returns.
  test.skipIf(kind === 'messages')('returns no output for max_tokens 0', async () => {
    const before = world.asks()
    const message = await client.messages.create({ ...hello, model, max_tokens: 0 })
    expect(message.content).toEqual([])
    expect(message.stop_reason).toBe('max_tokens')
    expect(message.usage.input_tokens).toBeGreaterThan(0)
    expect(message.usage.output_tokens).toBe(0)
    expect(world.asks()).toBe(before)
  })

  test('counts tokens without calling the model, the same each time', async () => {
    const before = world.asks()
    const { messages } = hello
    const short = await client.messages.countTokens({ model, messages })
    const again = await client.messages.countTokens({ model, messages })
    const longer = await client.messages.countTokens({ model, messages, system: 'Be kind to me.' })
    const beta = await client.beta.messages.countTokens({ model, messages, betas: ['x'] })
    expect(short.input_tokens).toBeGreaterThan(2)
    expect(again).toEqual(short)
    expect(beta.input_tokens).toBe(short.input_tokens)
    expect(longer.input_tokens).toBeGreaterThan(short.input_tokens)
    expect(world.asks()).toBe(before)
  })
})

describe.each(sdks)('the package $sdk', ({ Sdk, version }) => {
  const ask = (client: Anthropic) => client.messages.create({ model: 'demo-fast', ...hello })

  test('sends its dialect', async () => {
    await world.client(Sdk).messages.create({ model: 'messages', ...hello })
    expect(world.upstream.requests.at(-1)?.headers['anthropic-version']).toBe(version)
  })

  test('authenticates with an API key or a token, in either header or in both', async () => {
    const { apiKey, gateway } = world
    const token = await gateway.token()
    const none = { apiKey: null, authToken: null }
    const ways = [
      { apiKey },
      { ...none, authToken: apiKey },
      { ...none, authToken: token },
      { ...none, authToken: token, defaultHeaders: { 'x-api-key': apiKey } },
      { ...none, authToken: 'sk-other-vendor', defaultHeaders: { 'x-api-key': apiKey } },
    ]
    for (const way of ways) {
      const { stop_reason: reason } = await ask(world.client(Sdk, way))
      expect(reason).toBe('end_turn')
    }
  })

  test('works with a base URL that contains the version', async () => {
    for (const base of ['/compat', '/compat/', '/compat/v1']) {
      const client = world.client(Sdk, { baseURL: world.gateway.url + base })
      expect((await ask(client)).stop_reason).toBe('end_turn')
      expect(
        (await client.messages.countTokens({ model: 'demo', ...hello })).input_tokens,
      ).toBePositive()
      expect((await client.models.list()).data.length).toBePositive()
    }
  })

  test('sends sampling parameters in one dialect, and is not refused for them in the other', async () => {
    const client = world.client(Sdk)
    const sampling = { temperature: 0.5, top_p: 0.9, top_k: 5 }
    const { stop_reason: reason } = await client.messages.create({
      model: 'chat',
      ...hello,
      ...(sampling as object),
    })
    expect(reason).toBe('end_turn')
    const sent = world.asked()
    const isOlder = version === '2023-06-01'
    expect([sent['temperature'], sent['top_p']]).toEqual(
      isOlder ? [0.5, 0.9] : [undefined, undefined],
    )
  })
})
