import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rerankEndpoints } from '#rerank/endpoints.ts'
import { rerankBody, rerankResponse } from '#rerank/schema.ts'
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
  upstream = await startReplayUpstream(byLength)
  gateway = await startGateway({
    upstream: [
      { name: 'jina', url: upstream.baseUrl, models: ['chatty'] },
      { name: 'tei', url: upstream.baseUrl, models: [], rerankFields: 'texts' },
    ],
    model: [
      { name: 'sorter', mode: 'rerank', upstreams: ['jina'], upstreamModel: 'bge' },
      { name: 'tei-sorter', mode: 'rerank', upstreams: ['tei'] },
    ],
    retrieval: { rerankerModel: 'sorter', rerankTopN: 3 },
    retry: { retriesMax: 0 },
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const documents = ['a', 'bbb', 'cc', 'ddd']

test('documents are ordered by score, ties by index, up to the configured limit', async () => {
  upstream.answer(byLength)
  const answer = await rerank({ model: 'sorter', query: 'long?', documents })
  expect(answer).toMatchObject({
    object: 'rerank',
    model: 'sorter',
    results: [
      { index: 1, relevance_score: 3 },
      { index: 3, relevance_score: 3 },
      { index: 2, relevance_score: 2 },
    ],
    usage: { total_tokens: 11 },
    meta: { billed_units: { search_units: 1 } },
  })
  expect(answer.results[0]).not.toHaveProperty('document')
  const sent = JSON.parse(upstream.requests.at(-1)?.body ?? '')
  expect(sent).toEqual({ model: 'bge', query: 'long?', documents, top_n: 3 })
  expect(upstream.requests.at(-1)?.path).toBe('/v1/rerank')
})

test('a server with other field names receives those', async () => {
  upstream.answer(byLength)
  const answer = await rerank({
    model: 'tei-sorter',
    query: 'q',
    documents: [{ text: 'a' }, 'bb'],
    top_n: 1,
    return_documents: true,
  })
  expect(answer.results).toEqual([{ index: 1, relevance_score: 2, document: { text: 'bb' } }])
  const sent = JSON.parse(upstream.requests.at(-1)?.body ?? '')
  expect(sent).toEqual({ query: 'q', texts: ['a', 'bb'], truncate: true })
})

test('the configured model is the default, and top_n is clamped', async () => {
  upstream.answer(byLength)
  const answer = await rerank({ query: 'q', documents: ['a', 'bb'], top_n: 99 })
  expect(answer.model).toBe('sorter')
  expect(answer.results).toHaveLength(2)
})

test('an empty or invalid query or list of documents never reaches the upstream', async () => {
  const asked = upstream.requests.length
  const refusals: [unknown, string | null][] = [
    [[], null],
    [{ documents }, 'query'],
    [{ query: '', documents }, 'query'],
    [{ query: '  \n', documents }, 'query'],
    [{ query: 7, documents }, 'query'],
    [{ query: ['q'], documents }, 'query'],
    [{ query: 'q' }, 'documents'],
    [{ query: 'q', documents: [] }, 'documents'],
    [{ query: 'q', documents: null }, 'documents'],
    [{ query: 'q', documents: 'text' }, 'documents'],
    [{ query: 'q', documents: {} }, 'documents'],
    [{ query: 'q', documents: ['a', ''] }, 'documents[1]'],
    [{ query: 'q', documents: ['a', ' '] }, 'documents[1]'],
    [{ query: 'q', documents: [7] }, 'documents[0]'],
    [{ query: 'q', documents: [{ title: 'x' }] }, 'documents[0]'],
    [{ query: 'q', documents: Array(1_001).fill('a') }, 'documents'],
    [{ query: 'q', documents, top_n: 0 }, 'top_n'],
    [{ query: 'q', documents, top_n: 1.5 }, 'top_n'],
    [{ query: 'q', documents, top_n: '2' }, 'top_n'],
    [{ query: 'q', documents, max_tokens_per_doc: 0 }, 'max_tokens_per_doc'],
    [{ query: 'q', documents, return_documents: 'yes' }, 'return_documents'],
    [{ query: 'q', documents, model: 3 }, 'model'],
  ]
  for (const [body, param] of refusals) {
    const answer = await gateway.post('/v1/rerank', body)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ error: { code: 'rerank_bad_request', param } })
    // A schema does not know what is blank.
    if (!/ "|\\n/.test(JSON.stringify(body))) {
      expect(isDescribed(rerankBody, body), JSON.stringify(body)).toBe(false)
    }
  }
  expect(upstream.requests).toHaveLength(asked)
})

test('unknown models and models of another mode have different errors', async () => {
  const ask = (model: string) => gateway.post('/v1/rerank', { model, query: 'q', documents })
  expect((await ask('nobody')).status).toBe(404)
  const mismatch = await ask('chatty')
  expect(mismatch.status).toBe(400)
  expect(await mismatch.json()).toMatchObject({ error: { code: 'model_mode_mismatch' } })
})

test('a response with invalid indexes or scores is upstream_invalid_answer', async () => {
  const bad = [
    {},
    { results: [{ index: 9, relevance_score: 1 }] },
    {
      results: [
        { index: 0, relevance_score: 1 },
        { index: 0, relevance_score: 2 },
      ],
    },
    { results: [{ index: 0, relevance_score: null }] },
    { results: [{ index: -1, relevance_score: 1 }] },
    [{ index: 0.5, score: 1 }],
  ]
  for (const answer of bad) {
    upstream.answer(json(answer))
    const refused = await gateway.post('/v1/rerank', { query: 'q', documents })
    expect(refused.status).toBe(502)
    expect(await refused.json()).toMatchObject({ error: { code: 'upstream_invalid_answer' } })
  }
})

test('without a model in request and settings, the request is refused', async () => {
  const bare = await startGateway()
  const answer = await bare.post('/v1/rerank', { query: 'q', documents })
  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({
    error: { code: 'reranker_not_configured', param: 'model' },
  })
  await bare.stop()
})

test('its examples match its schema', () =>
  checkExamples(operationsOf(rerankEndpoints).at('POST /v1/rerank')))

type Answer = {
  model: string
  results: { index: number; relevance_score: number; document?: { text: string } }[]
}

async function rerank(body: unknown): Promise<Answer> {
  const answer = await gateway.post('/v1/rerank', body)
  expect(answer.status).toBe(200)
  const ranked = (await answer.json()) as Answer
  checkDescribed(rerankBody, body)
  checkDescribed(rerankResponse, ranked)
  return ranked
}

/** The longer, the better; the worst first, so that the order is not theirs. */
function byLength(request: ReplayRequest): ReplayAnswer {
  const { documents: sent, texts } = JSON.parse(request.body)
  if (texts !== undefined) return json(texts.map(scoreOf))
  const results = sent.map((text: string, at: number) => {
    const { index, score } = scoreOf(text, at)
    return { index, relevance_score: score }
  })
  return json({ results: results.reverse(), usage: { total_tokens: 11 } })
}

function scoreOf(text: string, index: number) {
  return { index, score: text.length }
}

function json(value: unknown): ReplayAnswer {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) }
}
