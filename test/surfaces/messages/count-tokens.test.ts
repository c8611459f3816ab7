import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { png, toDataUrl } from '#test/support/image-headers.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { jsonAnswer } from '#test/support/token-counting.ts'
import { textOf } from '#test/support/token-texts.ts'
import { writeWordTokenizer } from '#test/support/tokenizer-file.ts'

let upstream: ReplayUpstream
let gateway: Gateway
beforeAll(async () => {
  upstream = await startReplayUpstream(({ path }) =>
    path === '/tokenize' ? jsonAnswer({ count: 321 }) : jsonAnswer({ error: 'x' }, 500),
  )
  gateway = await startGateway({
    upstream: [
      { name: 'counting', url: upstream.baseUrl, models: [], tokenCounter: 'vllm' },
      { name: 'plain', url: upstream.baseUrl, models: ['plain'] },
      { name: 'demo', api: 'demo' },
    ],
    model: [
      { name: 'counted', upstreams: ['counting'] },
      { name: 'by-file', upstreams: ['plain'], tokenizer: writeWordTokenizer() },
    ],
    // The tokenizer is loaded while other tests use the machine.
    tokens: { patienceMs: 200_000, upstreamMs: 200_000 },
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const hello = [{ role: 'user', content: 'five words, and a mark' }]

async function count(body: object): Promise<{ tokens: number; tier: string | null }> {
  const httpResponse = await gateway.post('/compat/v1/messages/count_tokens', body)
  expect(httpResponse.status).toBe(200)
  const responseBody = JSON.parse(await httpResponse.text())
  expect(Object.keys(responseBody)).toEqual(['input_tokens'])
  return {
    tokens: responseBody.input_tokens,
    tier: httpResponse.headers.get('x-sluice-token-count'),
  }
}

async function countAsResponse(body: object) {
  const httpResponse = await gateway.post('/v1/responses/input_tokens', body)
  const responseBody = JSON.parse(await httpResponse.text())
  return {
    tokens: responseBody.input_tokens,
    tier: httpResponse.headers.get('x-sluice-token-count'),
  }
}

describe('the header names the counting method', () => {
  test.each([
    ['counted', 'upstream'],
    ['by-file', 'tokenizer-file'],
    ['plain', 'tokenizer'],
    ['demo', 'tokenizer'],
  ])('%s: %s', async (model, tier) => {
    const counted = await count({ model, messages: hello })
    expect(counted.tier).toBe(tier)
    expect(await countAsResponse({ model, input: 'five words, and a mark' })).toEqual(counted)
  })

  test('aliases of the route count as well, with the query that clients add', async () => {
    const httpResponse = await gateway.post('/compat/messages/count_tokens?beta=true', {
      model: 'counted',
      messages: hello,
    })
    expect(httpResponse.headers.get('x-sluice-token-count')).toBe('upstream')
    expect(await httpResponse.json()).toEqual({ input_tokens: 321 })
  })
})

test('the model is never called', () => {
  const paths = new Set(upstream.requests.map(({ path }) => path))
  expect([...paths]).toEqual(['/tokenize'])
})

describe('everything that a client sends is counted', () => {
  const text = textOf('english')
  const model = 'demo'
  const user = (content: unknown) => ({ role: 'user', content })
  const call = { type: 'tool_use', id: 'toolu_1', name: 'look_up', input: {} }
  const result = { type: 'tool_result', tool_use_id: 'toolu_1' }
  const plain = [user('Hello')]
  const called = [...plain, { role: 'assistant', content: [call] }, user([result])]
  const image = (width: number, height: number) => {
    const [, data] = toDataUrl(png(width, height)).split(',')
    return { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }
  }
  const tool = { name: 'look_up', input_schema: { type: 'object' } }

  test.each<[string, object, object]>([
    ['system', { messages: plain }, { messages: plain, system: text }],
    ['a text', { messages: plain }, { messages: [user([{ type: 'text', text }])] }],
    [
      'the input of a tool call',
      { messages: called },
      {
        messages: [
          ...plain,
          { role: 'assistant', content: [{ ...call, input: { query: text } }] },
          user([result]),
        ],
      },
    ],
    [
      'the result of a tool',
      { messages: called },
      { messages: [...called.slice(0, 2), user([{ ...result, content: text }])] },
    ],
    [
      'the texts of a result with blocks',
      { messages: called },
      {
        messages: [...called.slice(0, 2), user([{ ...result, content: [{ type: 'text', text }] }])],
      },
    ],
    [
      'the description of a tool',
      { messages: plain, tools: [tool] },
      { messages: plain, tools: [{ ...tool, description: text }] },
    ],
    [
      'the schema of a tool',
      { messages: plain, tools: [tool] },
      {
        messages: plain,
        tools: [
          {
            ...tool,
            input_schema: { type: 'object', properties: { word: { description: text } } },
          },
        ],
      },
    ],
    [
      'a document of text',
      { messages: plain },
      {
        messages: [
          user([
            { type: 'text', text: 'Hello' },
            { type: 'document', source: { type: 'text', media_type: 'text/plain', data: text } },
          ]),
        ],
      },
    ],
  ])('%s', async (_name, without, having) => {
    const [less, more] = [await count({ model, ...without }), await count({ model, ...having })]
    expect(more.tokens - less.tokens).toBeGreaterThan(320)
    expect(more.tokens - less.tokens).toBeLessThan(400)
  })

  test('images by their size', async () => {
    const of = async (...content: object[]) =>
      (await count({ model, messages: [user([{ type: 'text', text: 'Hello' }, ...content])] }))
        .tokens
    const none = await of()
    expect((await of(image(750, 100))) - none).toBe(100)
    expect((await of(image(750, 100), image(300, 500))) - none).toBe(300)
    expect((await of(image(9_000, 9_000))) - none).toBe(1_600)
  })

  test('fields that only affect the output do not change the count', async () => {
    const bare = await count({ model, messages: plain })
    const rich = await count({
      model,
      messages: plain,
      metadata: { user_id: text },
      tool_choice: { type: 'auto' },
      max_tokens: 5,
      temperature: 0.5,
      stop_sequences: [text],
    })
    expect(rich.tokens).toBe(bare.tokens)
  })
})

describe('a message begins with the counted number', () => {
  const message = { messages: [{ role: 'user', content: textOf('english') }] }
  const begin = async (body: object) => {
    const httpResponse = await gateway.post('/compat/v1/messages', { ...body, stream: true })
    const frames = (await httpResponse.text()).split('\n')
    const start = frames.find((line) => line.includes('"message_start"')) ?? ''
    return JSON.parse(start.replace('data: ', '')).message.usage.input_tokens
  }

  test('if it was counted before', async () => {
    const requestBody = { model: 'demo-fast', ...message }
    const { tokens } = await count(requestBody)
    expect(await begin({ ...requestBody, max_tokens: 50 })).toBe(tokens)
  })

  test('and with a close estimate if not', async () => {
    const fresh = `${textOf('code')} ${textOf('json')}`
    const requestBody = { model: 'demo-fast', messages: [{ role: 'user', content: fresh }] }
    const began = await begin({ ...requestBody, max_tokens: 50 })
    const { tokens } = await count(requestBody)
    expect(began / tokens).toBeWithin(0.75, 1.25)
  })

  test('as does a message with max_tokens 0', async () => {
    const requestBody = { model: 'demo', messages: [{ role: 'user', content: 'Only warm up.' }] }
    const httpResponse = await gateway.post('/compat/v1/messages', {
      ...requestBody,
      max_tokens: 0,
    })
    const { usage } = JSON.parse(await httpResponse.text())
    expect(usage.input_tokens).toBe((await count(requestBody)).tokens)
  })
})

describe('a count is refused', () => {
  test('for an unknown model, like a message', async () => {
    const body = { model: 'nobody', messages: hello }
    const counted = await gateway.post('/compat/v1/messages/count_tokens', body)
    const message = await gateway.post('/compat/v1/messages', { ...body, max_tokens: 5 })
    expect([counted.status, message.status]).toEqual([404, 404])
    const errorOf = async (answer: Response) => JSON.parse(await answer.text()).error
    expect(await errorOf(counted)).toEqual(await errorOf(message))
  })

  test('without messages', async () => {
    const httpResponse = await gateway.post('/compat/v1/messages/count_tokens', { model: 'demo' })
    expect(httpResponse.status).toBe(400)
  })

  test('without a credential', async () => {
    const httpResponse = await fetch(`${gateway.url}/compat/v1/messages/count_tokens`, {
      method: 'POST',
      body: JSON.stringify({ model: 'demo', messages: hello }),
    })
    expect(httpResponse.status).toBe(401)
  })
})
