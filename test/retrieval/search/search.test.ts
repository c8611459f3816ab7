import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Attributes } from '#files/files.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { outcome, type Person } from '#test/support/file-gateway.ts'
import { type RetrievalGateway, startRetrievalGateway } from '#test/support/retrieval-gateway.ts'

/** The search endpoint of collections. */

let database: TestDatabase
let gateway: RetrievalGateway
const ids: Record<string, string> = {}
beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startRetrievalGateway(database)
  await gateway.send(ann, '/v1/collections', { json: { name: 'docs' } })
  ids['folder'] = await gateway.files.folder(ann, 'policies')
  ids['inner'] = await gateway.files.folder(ann, 'old', ids['folder'])
  for (const [name, { text, folder, attributes }] of Object.entries(texts)) {
    ids[name] = await gateway.files.upload(ann, name, {
      text,
      attributes,
      folderId: ids[folder] ?? null,
      collections: ['docs'],
    })
  }
  await gateway.settled()
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const ann: Person = { subject: 'ann', groups: ['users'] }

const texts: Record<string, { text: string; folder: string; attributes: Attributes }> = {
  'leave.txt': {
    text: 'Holiday may be carried over until March.\nSick leave needs a note after three days.',
    folder: 'folder',
    attributes: { department: 'HR', lang: 'en', year: 2024, isFinal: true },
  },
  'urlaub.txt': {
    text: 'Urlaub darf bis März übertragen werden.\nÄrztliche Atteste sind nach drei Tagen nötig.',
    folder: 'inner',
    attributes: { department: 'HR', lang: 'de', year: 2023 },
  },
  'travel.txt': {
    text: 'Trains are booked by the travel idleProcess.\nFlights need an approval by a lead.',
    folder: '',
    attributes: { department: 'Travel', lang: 'en', ratio: 1.5 },
  },
}
async function search(json: object, collection = 'docs') {
  return gateway.send(ann, `/v1/collections/${collection}/search`, { json })
}

type Item = { filename: string; score: number; content: { text: string }[]; chunk: object }

async function found(json: object): Promise<Item[]> {
  const answer = await search({ top_k: 50, ...json })
  expect(outcome(answer)).toBe('200')
  return answer.body['data'] as Item[]
}

async function filesFound(filters: object[]): Promise<string[]> {
  const items = await found({ query: 'holiday', filters })
  return [...new Set(items.map(({ filename }) => filename))].toSorted()
}

test('a response contains passages, their positions and diagnostics', async () => {
  const { body } = await search({ query: 'When does holiday carry over?', top_k: 2 })
  expect(body).toMatchObject({
    object: 'vector_store.search_results.page',
    search_query: ['When does holiday carry over?'],
    data: [
      {
        file_id: ids['leave.txt'],
        filename: 'leave.txt',
        collection: 'docs',
        attributes: { department: 'HR', year: 2024, isFinal: true },
        content: [{ type: 'text', text: 'Holiday may be carried over until March.' }],
        chunk: { index: 0, page: 1, start: 0, end: 40 },
      },
      {},
    ],
    has_more: false,
    next_page: null,
    retrieval: {
      mode: 'hybrid',
      score_kind: 'rrf',
      degraded: [],
      indexes: [{ model: 'local-hash', role: 'source' }],
    },
  })
})

test('the default number of results comes from the settings', async () => {
  expect((await search({ query: 'holiday' })).body['data']).toHaveLength(3)
  expect(await found({ query: 'holiday' })).toHaveLength(6)
})

test('keywords match regardless of case and accents', async () => {
  const first = async (query: string) => (await found({ query, mode: 'keyword' }))[0]?.content[0]
  expect((await first('ARZTLICHE atteste'))?.text).toContain('Ärztliche Atteste')
  expect((await first('märz'))?.text).toContain('März')
})

test('passages with all keywords come before those with some', async () => {
  const items = await found({ query: 'an approval of the travel idleProcess', mode: 'keyword' })
  expect(items.map(({ content }) => content[0]?.text)).toEqual([
    'Trains are booked by the travel idleProcess.',
    'Flights need an approval by a lead.',
  ])
})

test('each mode has its own kind of score', async () => {
  const kindOf = async (mode: string) => {
    const { body } = await search({ query: 'holiday', mode })
    return Object(body['retrieval']).score_kind
  }
  expect(await kindOf('hybrid')).toBe('rrf')
  expect(await kindOf('vector')).toBe('cosine')
  expect(await kindOf('keyword')).toBe('text')
})

test('each passage has the score of every step that found it', async () => {
  const matchOf = async (mode: string) => {
    const { body } = await search({ query: 'holiday', mode })
    return Object(body['data'])[0].match
  }
  const [keyword, similarity] = [expect.any(Number), expect.any(Number)]
  expect(await matchOf('hybrid')).toEqual({ keyword, similarity, rerank: null })
  expect(await matchOf('keyword')).toEqual({ keyword, similarity: null, rerank: null })
  expect(await matchOf('vector')).toEqual({ keyword: null, similarity, rerank: null })
})

test('the score threshold applies to absolute scores only', async () => {
  const all = await found({ query: 'holiday', mode: 'vector' })
  const [best] = all
  const above = await found({ query: 'holiday', mode: 'vector', score_threshold: best?.score ?? 1 })
  expect(above).toEqual([all[0] as Item])
  expect(await found({ query: 'holiday', score_threshold: 2 })).toHaveLength(6)
})

test.each<[string, object[], string[]]>([
  ['no condition', [], ['leave.txt', 'travel.txt', 'urlaub.txt']],
  ['a text', [is('department', 'HR')], ['leave.txt', 'urlaub.txt']],
  ['two conditions', [is('department', 'HR'), is('lang', 'de')], ['urlaub.txt']],
  ['one of a list', [isIn('lang', ['de', 'fr'])], ['urlaub.txt']],
  ['a number, by its text', [is('year', '2024')], ['leave.txt']],
  ['a number with a point', [is('ratio', '1.5')], ['travel.txt']],
  ['a boolean, by its text', [is('isFinal', 'true')], ['leave.txt']],
  ['what is not there', [is('colour', 'red')], []],
  ['a value with a quote', [is('lang', "de' or '1'='1")], []],
  ['a value with a zero', [is('lang', 'de\0')], []],
  ['a value with half a character', [is('lang', '\ud800')], []],
  ['a filename', [is('filename', 'travel.txt')], ['travel.txt']],
  ['a type', [is('mime_type', 'text/plain')], ['leave.txt', 'travel.txt', 'urlaub.txt']],
  ['an owner who is none', [is('owner_id', 'ann')], []],
  ['a file that is none', [isIn('file_id', ['x', '{}'])], []],
])('a search is narrowed by %s', async (_, filters, expected) => {
  expect(await filesFound(filters)).toEqual(expected)
})

test('filters select files, and folders with their subfolders', async () => {
  expect(await filesFound([is('file_id', ids['travel.txt'])])).toEqual(['travel.txt'])
  expect(await filesFound([is('folder_id', ids['inner'])])).toEqual(['urlaub.txt'])
  expect(await filesFound([is('folder_id', ids['folder'])])).toEqual(['leave.txt', 'urlaub.txt'])
})

test('a filter may have a hundred values', async () => {
  const values = Array.from({ length: 100 }, (_, at) => `${at}`)
  expect(await filesFound([isIn('lang', [...values.slice(1), 'de'])])).toEqual(['urlaub.txt'])
})

const many = Array.from({ length: 101 }, (_, at) => `${at}`)

test.each<[string, object, string, string | null]>([
  ['a former field', { query: 'x', filter: 'a = 1' }, 'filter_removed', 'filter'],
  ['an unknown field', { query: 'x', limit: 3 }, 'unknown_field', 'limit'],
  ['no query', {}, 'unprocessable', 'query'],
  ['a query that is no text', { query: ['x'] }, 'unprocessable', 'query'],
  ['a blank query', { query: ' \n' }, 'query_empty', 'query'],
  ['a query of 100 KB', { query: 'x'.repeat(100_000) }, 'query_too_long', 'query'],
  ['too few results', { query: 'x', top_k: 0 }, 'unprocessable', 'top_k'],
  ['too many results', { query: 'x', top_k: 51 }, 'unprocessable', 'top_k'],
  ['another mode', { query: 'x', mode: 'fuzzy' }, 'unprocessable', 'mode'],
  [
    'a reranker that is not there',
    { query: 'x', rerank: true },
    'reranker_not_configured',
    'rerank',
  ],
  ['a filter that is a text', { query: 'x', filters: ['a'] }, 'unprocessable', 'filters[0]'],
  ['filters that are no list', { query: 'x', filters: {} }, 'unprocessable', 'filters'],
  [
    '== with a list',
    { query: 'x', filters: [is('a', 'b'), is('a', ['b'])] },
    'filter_type_mismatch',
    'filters[1].value',
  ],
  [
    '== with a number',
    { query: 'x', filters: [is('a', 1)] },
    'filter_type_mismatch',
    'filters[0].value',
  ],
  [
    'in with a text',
    { query: 'x', filters: [isIn('a', 'b')] },
    'filter_type_mismatch',
    'filters[0].value',
  ],
  [
    'in with numbers',
    { query: 'x', filters: [isIn('a', [1])] },
    'filter_type_mismatch',
    'filters[0].value',
  ],
  [
    'in with nothing',
    { query: 'x', filters: [isIn('a', [])] },
    'filter_type_mismatch',
    'filters[0].value',
  ],
  [
    'in with 101 values',
    { query: 'x', filters: [isIn('a', many)] },
    'filter_type_mismatch',
    'filters[0].value',
  ],
  [
    'another operator',
    { query: 'x', filters: [{ field: 'a', operator: '!=', value: 'b' }] },
    'unknown_operator',
    'filters[0].operator',
  ],
  [
    'SQL in the name of a field',
    { query: 'x', filters: [is("a' = '' or 1=1; drop table node; --", 'b')] },
    'unprocessable',
    'filters[0].field',
  ],
  [
    'a field of a filter that is not known',
    { query: 'x', filters: [{ ...is('a', 'b'), not: true }] },
    'unknown_field',
    'filters[0].not',
  ],
])('a search with %s is refused', async (_, json, code, param) => {
  const { status, body } = await search(json)
  expect({ status, ...Object(body['error']) }).toMatchObject({ status: 422, code, param })
})

test('malformed JSON and unknown collections are refused', async () => {
  const answer = await gateway.send(ann, '/v1/collections/docs/search', { json: '{"query":' })
  expect(outcome(answer)).toBe('400 malformed_json')
  expect(outcome(await search({ query: 'x' }, 'nowhere'))).toBe('404 not_found')
  expect(outcome(await search({ query: 'x' }, '%00'))).toBe('404 not_found')
})

test.each([
  ['question marks', '???'],
  ['NULs', '\0\0 x'],
  ['half a sign', '\ud800 lone'],
  ['operators of a full text search', '&|!():*<->'],
  ['one word of 10,000 letters', 'a'.repeat(10_000)],
  ['SQL', "'; drop table node"],
])('a query of odd signs is answered: %s', async (_, query) => {
  expect(outcome(await search({ query }))).toBe('200')
  expect(outcome(await search({ query, mode: 'keyword' }))).toBe('200')
})

function is(field: string, value: unknown) {
  return { field, operator: '==', value }
}

function isIn(field: string, value: unknown) {
  return { field, operator: 'in', value }
}
