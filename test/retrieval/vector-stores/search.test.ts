import { afterAll, beforeAll, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import type { Person } from '#test/support/file-gateway.ts'
import { type RetrievalGateway, startRetrievalGateway } from '#test/support/retrieval-gateway.ts'

/** Searches of vector stores with the `openai` package. */

let database: TestDatabase
let gateway: RetrievalGateway
let openai: OpenAI
beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startRetrievalGateway(database)
  openai = gateway.openai(ann)
  await openai.vectorStores.create({ name: 'docs' })
  for (const [name, attributes] of Object.entries(attributesOf)) {
    const text = Array.from({ length: 5 }, (_, at) => `holiday rule ${at} of ${name}`).join('\n')
    const fileId = await gateway.files.upload(ann, name, { text })
    await openai.vectorStores.files.create('docs', { file_id: fileId, attributes })
  }
  await gateway.settled()
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const ann: Person = { subject: 'ann', groups: ['users'] }

const attributesOf = {
  'a.txt': { lang: 'en', year: 2024, isFinal: true },
  'b.txt': { lang: 'de', year: 2025, isFinal: false },
  'c.txt': { lang: 'fr', year: 2026, isFinal: true },
}

type Filter = OpenAI.VectorStoreSearchParams['filters']

async function filesOf(filters: Filter): Promise<string[]> {
  const found = await openai.vectorStores.search('docs', {
    query: 'holiday',
    max_num_results: 50,
    ...(filters === undefined ? {} : { filters }),
  })
  return [...new Set(found.data.map(({ filename }) => filename))].toSorted()
}

test('a response is a page of passages with their files', async () => {
  const found = await openai.vectorStores.search('docs', { query: 'rule 3 of b.txt' })
  expect(found.data).toHaveLength(10)
  expect(found.data[0]).toMatchObject({
    filename: 'b.txt',
    attributes: { lang: 'de', year: 2025, isFinal: false },
    content: [{ type: 'text', text: 'holiday rule 3 of b.txt' }],
  })
})

test('the results of several queries are merged', async () => {
  const found = await openai.vectorStores.search('docs', {
    query: ['rule 3 of b.txt', 'rule 1 of c.txt'],
    rewrite_query: true,
  })
  const texts = found.data.map(({ content }) => content[0]?.text)
  expect(new Set(texts).size).toBe(10)
  expect(texts).toContain('holiday rule 1 of c.txt')
  expect(texts).toContain('holiday rule 3 of b.txt')
})

const eq = (key: string, value: string | number | boolean) => ({ type: 'eq' as const, key, value })

test.each<[string, Filter, string[]]>([
  ['nothing', undefined, ['a.txt', 'b.txt', 'c.txt']],
  ['a text', eq('lang', 'de'), ['b.txt']],
  ['a number', eq('year', 2026), ['c.txt']],
  ['a boolean', eq('isFinal', true), ['a.txt', 'c.txt']],
  ['a list', { type: 'in', key: 'year', value: [2024, 2025] }, ['a.txt', 'b.txt']],
  ['both', { type: 'and', filters: [eq('isFinal', true), eq('lang', 'en')] }, ['a.txt']],
  ['either', { type: 'or', filters: [eq('lang', 'de'), eq('lang', 'fr')] }, ['b.txt', 'c.txt']],
  [
    'either within both',
    {
      type: 'and',
      filters: [eq('isFinal', true), { type: 'or', filters: [eq('lang', 'de'), eq('lang', 'fr')] }],
    } as Filter,
    ['c.txt'],
  ],
])('it is narrowed by %s', async (_, filters, expected) => {
  expect(await filesOf(filters)).toEqual(expected)
})

test.each<[string, Filter, string, string]>([
  ['what is greater', { type: 'gt', key: 'year', value: 1 }, 'unknown_operator', 'filters.type'],
  ['what is not', { type: 'ne', key: 'a', value: 'b' }, 'unknown_operator', 'filters.type'],
  [
    'either of two keys',
    { type: 'or', filters: [eq('a', 'b'), eq('c', 'd')] },
    'invalid_request',
    'filters',
  ],
  [
    'an odd key within',
    { type: 'and', filters: [eq('a', 'b'), eq('c d', 'e')] },
    'invalid_request',
    'filters.filters[1].key',
  ],
  ['a list for one', { ...eq('a', 'b'), value: ['b'] }, 'filter_type_mismatch', 'filters.value'],
  ['one for a list', { type: 'in', key: 'a', value: 'b' }, 'filter_type_mismatch', 'filters.value'],
  ['nothing at all', { type: 'and', filters: [] }, 'invalid_request', 'filters.filters'],
])('it cannot be narrowed by %s', async (_, filters, code, param) => {
  const error = await filesOf(filters).catch((thrown: unknown) => thrown)
  if (!(error instanceof OpenAI.APIError)) throw new Error(`it was not refused: ${error}`)
  expect(error).toMatchObject({ status: 400, code, param })
})

test.each<[string, object, string]>([
  ['no query', {}, 'query'],
  ['a blank query', { query: ' ' }, 'query'],
  ['a blank one of two', { query: ['x', ''] }, 'query[1]'],
  ['eleven queries', { query: Array(11).fill('x') }, 'query'],
  ['too many results', { query: 'x', max_num_results: 51 }, 'max_num_results'],
])('a search with %s is refused', async (_, json, param) => {
  const { status, body } = await gateway.send(ann, '/v1/vector_stores/docs/search', { json })
  expect({ status, ...Object(body['error']) }).toMatchObject({ status: 400, param })
})
