import { afterEach, describe, expect, test } from 'bun:test'
import { postEmbeddings } from '#inference/embeddings.ts'
import { makeContext } from '#test/support/generation.ts'
import { json, stopUpstreams, upstreamThat } from '#test/support/generations.ts'

afterEach(stopUpstreams)

const base64 = (...numbers: number[]) =>
  Buffer.from(new Float32Array(numbers).buffer).toString('base64')

async function embed(answer: object, texts = ['one'], dims?: number) {
  const upstream = await upstreamThat({ headers: json, body: JSON.stringify(answer) })
  const input = dims === undefined ? { texts } : { texts, dims }
  const embeddings = await postEmbeddings(input, makeContext({ baseUrl: upstream.baseUrl }))
  return { embeddings, body: JSON.parse(upstream.requests[0]?.body ?? '') }
}

test('vectors are numbers or base64, in any order', async () => {
  const { embeddings, body } = await embed(
    {
      data: [
        { index: 1, embedding: base64(0.5, -1) },
        { index: 0, embedding: [1, 2] },
      ],
      usage: { prompt_tokens: 7 },
    },
    ['one', 'two'],
  )
  expect(embeddings).toEqual({
    vectors: [new Float32Array([1, 2]), new Float32Array([0.5, -1])],
    dims: 2,
    inputTokens: 7,
  })
  expect(body).toEqual({ model: 'upstream-model', input: ['one', 'two'], encoding_format: 'float' })
})

test('the index may be absent, as may the usage', async () => {
  const { embeddings, body } = await embed({ data: [{ embedding: [3] }] }, ['one'], 1)
  expect(embeddings).toEqual({ vectors: [new Float32Array([3])], dims: 1, inputTokens: null })
  expect(body.dimensions).toBe(1)
})

describe('an answer is refused', () => {
  const one = (embedding: unknown) => ({ data: [{ index: 0, embedding }] })
  test.each<[string, object, string]>([
    ['without data', {}, 'no vectors for 1 texts'],
    ['with too few vectors', { data: [] }, '0 vectors for 1 texts'],
    ['with a vector too many', { data: [{ embedding: [1] }, { embedding: [1] }] }, '2 vectors'],
    ['with an index beyond', { data: [{ index: 1, embedding: [1] }] }, 'a wrong index'],
    ['with a negative index', { data: [{ index: -1, embedding: [1] }] }, 'a wrong index'],
    ['with a textual index', { data: [{ index: '0', embedding: [1] }] }, 'a wrong index'],
    ['without a vector', one(undefined), 'not numeric'],
    ['with an empty vector', one([]), 'not numeric'],
    ['with texts as numbers', one(['1']), 'not numeric'],
    ['with NaN', one(base64(1, Number.NaN)), 'not numeric'],
    ['with a truncated vector', one(Buffer.from([1, 2, 3, 4, 5]).toString('base64')), 'truncated'],
    ['with a zero vector', one([0, 0]), 'a zero vector'],
  ])('%s', async (_name, answer, message) => {
    const failure = await embed(answer).catch((error: unknown) => error)
    expect(failure).toMatchObject({ kind: 'upstream_invalid_answer' })
    expect(String(failure)).toContain(message)
  })

  test('with one index twice, or vectors of different lengths', async () => {
    const twice = [
      { index: 0, embedding: [1] },
      { index: 0, embedding: [1] },
    ]
    await expect(embed({ data: twice }, ['one', 'two'])).rejects.toThrow('a wrong index')
    const mixed = [{ embedding: [1] }, { embedding: [1, 2] }]
    await expect(embed({ data: mixed }, ['one', 'two'])).rejects.toThrow('different lengths')
  })
})
