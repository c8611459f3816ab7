import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createLocalHashEmbedder } from '#embedding/local-hash.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import type { Person } from '#test/support/file-gateway.ts'
import { type RetrievalGateway, startRetrievalGateway } from '#test/support/retrieval-gateway.ts'

/** Passages that are stored in parts, for models that read short texts. Each line is a part. */

const ann: Person = { subject: 'ann', groups: ['users'] }
const lines = ['alpha one', 'bravo two', 'charlie three', 'delta four', 'echo five', 'foxtrot six']

let database: TestDatabase
let gateway: RetrievalGateway
beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startRetrievalGateway(database)
  const short = { ...createLocalHashEmbedder(), model: 'short', passageTokensMax: 250 }
  gateway.embedders.set('short', short)
  const own = { max_tokens: 250, overlap_tokens: 0 }
  await create('parts', { chunking: { max_tokens: 800, overlap_tokens: 100 } })
  await create('pairs', { chunking: { max_tokens: 500, overlap_tokens: 0 } })
  await create('whole', { chunking: own })
  await gateway.files.upload(ann, 'letters.txt', {
    text: lines.join('\n'),
    attributes: {},
    folderId: null,
    collections: ['parts', 'pairs', 'whole'],
  })
  await gateway.settled()
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

async function create(name: string, fields: object): Promise<void> {
  const json = { name, embedding_model: 'short', ...fields }
  const { body } = await gateway.send(ann, '/v1/collections', { json })
  expect(body).toMatchObject({ name, ...fields })
}

type Result = { content: { text: string }[]; chunk: { index: number; start: number; end: number } }

async function search(collection: string, query: string, topK = 3): Promise<readonly Result[]> {
  const json = { query, mode: 'keyword', top_k: topK }
  const { body } = await gateway.send(ann, `/v1/collections/${collection}/search`, { json })
  return body['data'] as Result[]
}

const textsOf = (results: readonly Result[]) =>
  results.map(({ content }) => content[0]?.text.split(/\n+/))

test('a part is returned with the parts around it, as one passage', async () => {
  const found = await search('parts', 'charlie')
  expect(textsOf(found)).toEqual([['bravo two', 'charlie three', 'delta four']])
  expect(found[0]?.chunk).toMatchObject({ index: 2, start: 10, end: 44 })
})

test('at the ends of a file there is less around it', async () => {
  expect(textsOf(await search('parts', 'alpha'))).toEqual([['alpha one', 'bravo two']])
  expect(textsOf(await search('parts', 'foxtrot'))).toEqual([['echo five', 'foxtrot six']])
})

test('a part within a better result is no result of its own', async () => {
  const found = await search('parts', 'bravo two charlie')
  expect(textsOf(found)).toEqual([['alpha one', 'bravo two', 'charlie three']])
})

test('results do not repeat parts of better ones', async () => {
  const found = textsOf(await search('parts', 'bravo two delta'))
  expect(found).toEqual([
    ['alpha one', 'bravo two', 'charlie three'],
    ['delta four', 'echo five'],
  ])
})

test('parts within better results do not count as results', async () => {
  const found = textsOf(await search('parts', lines.join(' '), 2))
  expect(found).toHaveLength(2)
  expect(new Set(found.flat()).size).toBe(found.flat().length)
})

test('a passage of two parts has the part after the found one', async () => {
  expect(textsOf(await search('pairs', 'charlie'))).toEqual([['charlie three', 'delta four']])
})

test('passages that are short enough are returned as they are', async () => {
  expect(textsOf(await search('whole', 'charlie'))).toEqual([['charlie three']])
})
