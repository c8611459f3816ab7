import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { createResponseStore } from '#responses/store.ts'
import { addEnded } from '#test/responses/store-fixture.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { ann, outcome, type SettingsGateway, startSettingsGateway } from './settings-gateway.ts'

let database: TestDatabase
let gateway: SettingsGateway
let upstream: Bun.Server<unknown>

beforeAll(async () => {
  database = await openTestDatabase()
  upstream = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const documents: unknown[] = Object(await request.json()).documents
      const results = documents.map((_, index) => ({ index, relevance_score: 1 / (index + 1) }))
      return Response.json({ results })
    },
  })
  gateway = await startSettingsGateway(database, { upstreamUrl: `${upstream.url.origin}/v1` })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop(true)
  await database.close()
})
beforeEach(async () => {
  await gateway.send('/v1/config/rollback', { json: { revision: 0 } })
})

test('files.max_bytes limits uploads', async () => {
  const upload = (text: string) =>
    gateway.send(`/v1/files?name=${crypto.randomUUID()}`, { as: ann, method: 'POST', json: text })
  expect(outcome(await upload('four'))).toBe('201')
  await gateway.patch({ files: { max_bytes: 4 } })
  expect(outcome(await upload('four'))).toBe('201')
  expect(outcome(await upload('fives'))).toBe('413 file_too_large')
  await gateway.patch({ files: { max_bytes: null } })
  expect(outcome(await upload('fives'))).toBe('201')
})

test('files.people_picker enables the search for users', async () => {
  const find = () => gateway.send('/v1/principals?q=ann', { as: ann })
  expect(outcome(await find())).toBe('200')
  await gateway.patch({ files: { people_picker: false } })
  expect(outcome(await find())).toBe('403 people_picker_off')
})

test('files.trash_seconds is the retention time of the trash', async () => {
  const caller = { userId: userIdOf(ann.subject), groups: ann.groups }
  const id = await gateway.upload(ann, 'thrown-away')
  await gateway.files.remove(caller, { kind: 'file', id }, { isRecursive: false, ifVersion: null })
  gateway.pass(3_600_000)
  expect(await gateway.files.trash(caller, { limit: 10 })).toHaveLength(1)
  await gateway.patch({ files: { trash_seconds: 3_600 } })
  expect(await gateway.files.trash(caller, { limit: 10 })).toEqual([])
  await gateway.patch({ files: { trash_seconds: 7_200 } })
  expect(await gateway.files.trash(caller, { limit: 10 })).toHaveLength(1)
})

test('reranker_model and rerank_top_n apply to the next request', async () => {
  const rerank = () =>
    gateway.send('/v1/rerank', { json: { query: 'q', documents: ['a', 'b', 'c'] } })
  expect(outcome(await rerank())).toBe('400 reranker_not_configured model')
  await gateway.patch({ reranker_model: 'sorter' })
  expect((await rerank()).body).toMatchObject({ model: 'sorter', results: [{}, {}, {}] })
  await gateway.patch({ rerank_top_n: 2 })
  expect((await rerank()).body['results']).toHaveLength(2)
})

test('a response is kept for the responses.ttl_seconds of the time when it ended', async () => {
  const store = createResponseStore(database, {
    limits: gateway.config.responses,
    ttlS: () => gateway.settings.current().responses.ttl_seconds,
    now: () => new Date(),
  })
  const owner = userIdOf(ann.subject)
  const add = async () => (await addEnded(store, { ownerId: owner })).id
  const long = await add()
  await gateway.patch({ responses: { ttl_seconds: 60 } })
  const short = await add()
  await store.sweep(new Date(Date.now() + 61_000))
  expect(await store.find(owner, short)).toBeUndefined()
  expect(await store.find(owner, long)).toMatchObject({ log: { id: long } })
})
