import { afterAll, beforeAll, expect, test } from 'bun:test'
import { listEndpoints } from '#app.ts'
import { asRecord } from '#lib/json.ts'
import { describedAnswers, schemaFaults } from '#test/support/described-answers.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** Responses of collections, vector stores, searches and reindexes match their schemas. */

type Body = Record<string, unknown>

let gateway: Gateway
let holdAgainst: ReturnType<typeof describedAnswers>
let fileId: string
beforeAll(async () => {
  gateway = await startGateway()
  holdAgainst = describedAnswers(listEndpoints(gateway.deps))
  fileId = await upload('warranty.txt', 'The warranty ends after two years.')
})
afterAll(() => gateway.stop())

async function headersFor(groups: readonly string[]): Promise<Record<string, string>> {
  return { authorization: `Bearer ${await gateway.token(groups, 'ann')}` }
}

async function upload(name: string, text: string): Promise<string> {
  const form = new FormData()
  form.append('file', new File([text], name))
  const headers = await headersFor(['users'])
  const answer = await fetch(`${gateway.url}/v1/files`, { method: 'POST', headers, body: form })
  return String(asRecord(await answer.json())['id'])
}

/** `how`: `POST /v1/collections`. Validates the response against its schema. */
async function ask(how: string, json?: unknown): Promise<{ status: number; body: Body }> {
  const [method = 'GET', path = '/'] = how.split(' ')
  const answer = await fetch(gateway.url + path, {
    method,
    headers: await headersFor(['admins']),
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  })
  const body = asRecord(await answer.json())
  holdAgainst(how, answer.status, body)
  return { status: answer.status, body }
}

async function statuses(...requests: [how: string, json?: unknown][]): Promise<number[]> {
  const seen = []
  for (const [how, json] of requests) seen.push((await ask(how, json)).status)
  return seen
}

const memberIn = (name: string) => `/v1/collections/${name}/files/${fileId}`

test('a response that differs from its schema is detected', () => {
  const validate =
    (body: unknown, status = 200) =>
    () =>
      holdAgainst('GET /v1/collections', status, body)
  const page = { object: 'list', data: [], has_more: false, first_id: null, last_id: null }
  expect(validate(page)).not.toThrow()
  expect(validate({ ...page, next: null })).toThrow('next')
  expect(validate({ ...page, data: [{ id: 'x' }] })).toThrow('name')
  expect(validate(page, 206)).toThrow('undocumented')
  expect(validate({ error: { code: 'odd' } }, 422)).toThrow('odd')
})

test('collections and their files', async () => {
  const made = await statuses(
    ['POST /v1/collections', { name: 'books', description: 'All of them' }],
    ['POST /v1/collections', { name: 'books' }],
    ['POST /v1/collections', { name: 'Not A Name' }],
    ['POST /v1/collections', { name: 'more', embedding_model: 'absent' }],
    ['POST /v1/collections', { name: 'more', colour: 'red' }],
    ['GET /v1/collections'],
    ['GET /v1/collections?limit=0'],
    ['PATCH /v1/collections/books', { description: null }],
    ['POST /v1/collections/books/files', { file_id: fileId, attributes: { language: 'en' } }],
    ['POST /v1/collections/books/files', {}],
    ['POST /v1/collections/absent/files', { file_id: fileId }],
  )
  expect(made).toEqual([201, 409, 422, 422, 422, 200, 422, 200, 202, 422, 404])
  await eventually('the file can be found', async () => {
    return (await ask(`GET ${memberIn('books')}`)).body['status'] === 'completed'
  })
  const shown = await statuses(
    ['GET /v1/collections/books'],
    ['GET /v1/collections/books/files'],
    [`PATCH ${memberIn('books')}`, { attributes: { language: 'de', pages: 3 } }],
    [`PATCH ${memberIn('books')}`, {}],
    ['GET /v1/collections/books/files/no-id'],
    ['GET /v1/collections/absent'],
    [`POST /v1/files/${fileId}/reprocess`],
    ['POST /v1/files/no-id/reprocess'],
  )
  expect(shown).toEqual([200, 200, 200, 422, 404, 404, 202, 404])
})

test('searches', async () => {
  const search = 'POST /v1/collections/books/search'
  const { body } = await ask(search, { query: 'warranty', mode: 'keyword' })
  expect(body['data']).toMatchObject([{ file_id: fileId, collection: 'books' }])
  const refused = await statuses(
    [search, { query: ' ' }],
    [search, { query: 'x', filter: 'y' }],
    [search, { query: 'x', rerank: true }],
    [search, { query: 'x', filters: [{ field: 'a', operator: '==', value: [] }] }],
    [search, { query: 'x', limit: 3 }],
    ['POST /v1/collections/absent/search', { query: 'x' }],
  )
  expect(refused).toEqual([422, 422, 422, 422, 422, 404])
})

test('vector stores', async () => {
  const { body: store } = await ask('POST /v1/vector_stores', { name: 'A Store' })
  const path = `/v1/vector_stores/${store['id']}`
  const { body: batch } = await ask(`POST ${path}/file_batches`, { file_ids: [fileId] })
  const seen = await statuses(
    ['GET /v1/vector_stores'],
    [`GET ${path}`],
    [`POST ${path}`, { metadata: { team: 'support' } }],
    [`POST ${path}`, { metadata: 'none' }],
    [`POST ${path}`, { expires_after: { days: 1 } }],
    [`POST ${path}/files`, { file_id: fileId }],
    [`GET ${path}/files?filter=completed`],
    [`GET ${path}/files?filter=odd`],
    [`GET ${path}/files/${fileId}`],
    [`POST ${path}/files/${fileId}`, { attributes: { language: 'en' } }],
    [`GET ${path}/file_batches/${batch['id']}`],
    [`GET ${path}/file_batches/${batch['id']}/files`],
    [`GET ${path}/file_batches/no-id`],
    [`POST ${path}/search`, { query: ['warranty', 'years'], max_num_results: 2 }],
    [`POST ${path}/search`, { query: 'x', filters: { type: 'gt', key: 'a', value: 1 } }],
    [`DELETE ${path}/files/${fileId}`],
    [`DELETE ${path}`],
    [`GET ${path}`],
  )
  expect(seen).toEqual([
    ...[200, 200, 200, 400, 400, 200, 200, 400, 200, 200, 200, 200, 404, 200, 400, 200, 200, 404],
  ])
})

test('reindexes and their progress events', async () => {
  const params = {
    embedding_model: 'local-hash',
    chunking: { max_tokens: 200, overlap_tokens: 20 },
  }
  const startReindex = 'POST /v1/embeddings/reindex'
  expect((await ask(startReindex, { ...params, dry_run: true })).status).toBe(200)
  const { status, body: begun } = await ask(startReindex, params)
  expect(status).toBe(202)
  const path = `/v1/embeddings/reindex/${begun['id']}`
  const events = await fetch(`${gateway.url}${path}/events`, {
    headers: await headersFor(['admins']),
  })
  const progressEvents = [...(await events.text()).matchAll(/^event: progress\ndata: (.+)$/gm)]
  const declared = listEndpoints(gateway.deps).find(({ path }) =>
    path.endsWith('/reindex/:id/events'),
  )
  const { schema } = Object(declared?.responses[200]?.content?.['text/event-stream'])
  expect(progressEvents.length).toBeGreaterThan(0)
  for (const [, data] of progressEvents)
    expect(schemaFaults(schema, JSON.parse(data ?? ''))).toEqual([])
  const rest = await statuses(
    [`GET ${path}`],
    ['GET /v1/embeddings/reindex?status=completed'],
    ['GET /v1/embeddings/reindex?status=odd'],
    [`GET ${path}/failures`],
    [startReindex, params],
    [startReindex, { ...params, embedding_model: 'absent' }],
    [`POST ${path}/pause`],
    [`POST ${path}/accept`],
    [`POST ${path}/revert`],
    ['POST /v1/embeddings/reindex/no-id/cancel'],
  )
  expect(rest).toEqual([200, 200, 422, 200, 422, 422, 409, 200, 202, 404])
  await eventually('it has gone back', async () => {
    return (await ask(`GET ${path}`)).body['status'] === 'reverted'
  })
  expect(await statuses([`DELETE ${memberIn('books')}`], ['DELETE /v1/collections/books'])).toEqual(
    [200, 200],
  )
})
