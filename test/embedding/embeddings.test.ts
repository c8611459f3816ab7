import { afterAll, beforeAll, expect, test } from 'bun:test'
import { encode } from 'gpt-tokenizer/encoding/cl100k_base'
import { embeddingEndpoints } from '#embedding/endpoints.ts'
import { embeddingBody, embeddingList } from '#embedding/schema.ts'
import { asRecord, parseJson } from '#lib/json.ts'
import { checkDescribed, checkExamples, isDescribed } from '#test/support/described-shapes.ts'
import { operationsOf } from '#test/support/endpoints.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import {
  type ReplayAnswer,
  type ReplayRequest,
  type ReplayUpstream,
  startReplayUpstream,
} from '#test/support/replay-upstream.ts'

let upstream: ReplayUpstream
let gateway: Gateway

beforeAll(async () => {
  upstream = await startReplayUpstream(embedByLength)
  gateway = await startGateway({
    upstream: [{ name: 'tei', url: upstream.baseUrl, models: ['chatty'] }],
    model: [
      {
        name: 'embedder',
        mode: 'embed',
        upstreams: ['tei'],
        upstreamModel: 'e5',
        passagePrefix: 'passage: ',
      },
      { name: 'slow-embedder', mode: 'embed', upstreams: ['tei'] },
      { name: 'sorter', mode: 'rerank', upstreams: ['tei'] },
    ],
    retry: { retriesMax: 2 },
    deadlines: { firstEventMs: 300 },
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

test('the openai package receives the vectors of an upstream, in order, with its usage', async () => {
  upstream.answer(embedByLength)
  const client = await gateway.openai()
  const input = ['one', 'three', 'twenty']
  for (const encoding_format of ['float', 'base64'] as const) {
    const answer = await client.embeddings.create({ model: 'embedder', input, encoding_format })
    const firsts = answer.data.map(({ embedding }) =>
      typeof embedding === 'string' ? firstOf(embedding) : embedding[0],
    )
    expect(firsts).toEqual(input.map((text) => 'passage: '.length + text.length))
    expect(answer.usage).toEqual({ prompt_tokens: 7, total_tokens: 7 })
    expect(answer.model).toBe('embedder')
  }
  expect(parseJson(upstream.requests.at(-1)?.body ?? '')).toMatchObject({ model: 'e5' })
})

test('a batch that the upstream refuses is halved', async () => {
  const textsMax = 5
  upstream.answer((request) => {
    const { input } = bodyOf(request)
    if (input.length <= textsMax) return embedByLength(request)
    return { ...json({ error: 'batch size is too large' }), status: 422 }
  })
  const input = Array.from({ length: 23 }, (_, at) => 'x'.repeat(at + 1))
  const client = await gateway.openai()
  const { data } = await client.embeddings.create({ model: 'embedder', input })
  expect(data.map(({ embedding }) => embedding[0])).toEqual(input.map((text) => text.length + 9))
})

test('a batch that takes too long is halved, and the next one begins smaller', async () => {
  const textsMax = 3
  const sizes: number[] = []
  upstream.answer((request) => {
    const { input } = bodyOf(request)
    sizes.push(input.length)
    return input.length <= textsMax ? embedByLength(request) : { ending: 'silent' }
  })
  const input = Array.from({ length: 12 }, (_, at) => 'x'.repeat(at + 1))
  const client = await gateway.openai()
  const request = { model: 'slow-embedder', input }
  const { data } = await client.embeddings.create(request)
  expect(data.map(({ embedding }) => embedding[0])).toEqual(input.map((text) => text.length))
  const tried = sizes.splice(0)
  expect(new Set(tried)).toEqual(new Set([12, 6, 3]))
  await client.embeddings.create(request)
  expect(sizes).toEqual([3, 3, 3, 3])
})

test('an invalid embeddings response is upstream_invalid_answer', async () => {
  const bad = {
    'fewer vectors': { data: [] },
    'no data': { data: null },
    'two of one place': { data: [vector([1], 0), vector([1], 0)] },
    'several lengths': { data: [vector([1], 0), vector([1, 2], 1)] },
    'no numbers': { data: [vector([null], 0), vector([1], 1)] },
    'nothing but zeros': { data: [vector([0], 0), vector([1], 1)] },
    'an empty vector': { data: [vector([], 0), vector([], 1)] },
  }
  for (const [what, answer] of Object.entries(bad)) {
    upstream.answer(json(answer))
    const refused = await embed(['a', 'b'])
    expect([what, refused.status, refused.code]).toEqual([what, 502, 'upstream_invalid_answer'])
  }
  upstream.answer({ ...json({}), body: '{"data":[{"embedding":[1e999]},{"embedding":[1]}]}' })
  expect(await embed(['a', 'b'])).toMatchObject({ status: 502 })
})

test('a rate-limited upstream is retried', async () => {
  let failures = 2
  upstream.answer((request) =>
    failures-- > 0 ? { ...json({ error: 'busy' }), status: 429 } : embedByLength(request),
  )
  expect(await embed(['a'])).toMatchObject({ status: 200 })
})

test('the built-in embedder needs no upstream and returns similar vectors for similar texts', async () => {
  const client = await gateway.openai()
  const { data } = await client.embeddings.create({
    model: 'local-hash',
    input: ['Holiday carry-over', 'holidays are carried over', 'cooking pasta'],
    dimensions: 128,
  })
  const [asked = [], near = [], far = []] = data.map(({ embedding }) => embedding)
  expect(asked).toHaveLength(128)
  expect(dot(asked, asked)).toBeCloseTo(1, 4)
  expect(dot(asked, near)).toBeGreaterThan(dot(asked, far))
})

test('arrays of tokens are decoded, as SDKs send them for models that they do not know', async () => {
  upstream.answer(embedByLength)
  const client = await gateway.openai()
  const texts = ['Grüße aus 東京 🎉', 'second\n\ttext', '<|im_start|>']
  const tokens = texts.map((text) => encode(text, { disallowedSpecial: new Set() }))
  const sent = () => bodyOf(upstream.requests.at(-1) ?? { body: '{}' }).input
  await client.embeddings.create({ model: 'embedder', input: tokens })
  expect(sent()).toEqual(texts.map((text) => `passage: ${text}`))
  await client.embeddings.create({ model: 'embedder', input: tokens[0] ?? [] })
  expect(sent()).toEqual([`passage: ${texts[0]}`])
  const [one, same] = await Promise.all([
    client.embeddings.create({ model: 'local-hash', input: tokens }),
    client.embeddings.create({ model: 'local-hash', input: texts }),
  ])
  expect(one.data).toEqual(same.data)
  const unknown = await gateway.post('/v1/embeddings', {
    model: 'embedder',
    input: [
      [1, 2],
      [5, 100_300],
    ],
  })
  expect(await unknown.json()).toMatchObject({
    error: { code: 'invalid_request', param: 'input[1][1]' },
  })
})

test('an invalid request is refused with the name of the field', async () => {
  const refusals: [unknown, string][] = [
    [{ input: 'a' }, 'model'],
    [{ model: 'embedder' }, 'input'],
    [{ model: 'embedder', input: [] }, 'input'],
    [{ model: 'embedder', input: '' }, 'input'],
    [{ model: 'embedder', input: ['a', ''] }, 'input[1]'],
    [{ model: 'embedder', input: [[1, -2]] }, 'input[0]'],
    [{ model: 'embedder', input: [[1], []] }, 'input[1]'],
    [{ model: 'embedder', input: [['a']] }, 'input[0]'],
    [{ model: 'embedder', input: [1, 'a'] }, 'input'],
    [{ model: 'embedder', input: ['a', 1] }, 'input[1]'],
    [{ model: 'embedder', input: 'a', dimensions: 0 }, 'dimensions'],
    [{ model: 'embedder', input: 'a', encoding_format: 'hex' }, 'encoding_format'],
    [{ model: 'embedder', input: Array(2_049).fill('a') }, 'input'],
  ]
  for (const [body, param] of refusals) {
    const answer = await gateway.post('/v1/embeddings', body)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ error: { param } })
    expect(isDescribed(embeddingBody, body), JSON.stringify(body)).toBe(false)
  }
})

test('a model of another mode is refused by both endpoints', async () => {
  const embedding = await gateway.post('/v1/embeddings', { model: 'chatty', input: 'a' })
  expect(await embedding.json()).toMatchObject({ error: { code: 'model_mode_mismatch' } })
  const response = await gateway.post('/v1/responses', { model: 'embedder', input: 'a' })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { param: 'model' } })
  const absent = await gateway.post('/v1/embeddings', { model: 'nobody', input: 'a' })
  expect(absent.status).toBe(404)
})

test('responses and examples match the documented schemas', async () => {
  for (const [model, encoding_format] of [
    ['embedder', undefined],
    ['local-hash', 'base64'],
  ]) {
    upstream.answer(embedByLength)
    const body = { model, input: ['a', 'bb'], encoding_format, user: null }
    checkDescribed(embeddingBody, JSON.parse(JSON.stringify(body)))
    const answer = await gateway.post('/v1/embeddings', body)
    checkDescribed(embeddingList, await answer.json())
  }
  checkExamples(operationsOf(embeddingEndpoints).at('POST /v1/embeddings'))
})

async function embed(input: string[]): Promise<{ status: number; code: unknown }> {
  const answer = await gateway.post('/v1/embeddings', { model: 'embedder', input })
  const body: unknown = await answer.json()
  return { status: answer.status, code: asRecord(asRecord(body)['error'])['code'] ?? null }
}

function embedByLength(request: ReplayRequest): ReplayAnswer {
  const data = bodyOf(request).input.map((text, at) => vector([text.length, 1], at))
  return json({ data: data.toReversed(), usage: { prompt_tokens: 7 } })
}

function vector(embedding: readonly unknown[], index: number) {
  return { object: 'embedding', index, embedding }
}

function bodyOf(request: Pick<ReplayRequest, 'body'>): { input: string[] } {
  return JSON.parse(request.body)
}

function json(value: unknown): ReplayAnswer {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) }
}

function firstOf(base64: string): number {
  return Buffer.from(base64, 'base64').readFloatLE(0)
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)
}
