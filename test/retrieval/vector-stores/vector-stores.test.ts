import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import OpenAI from 'openai'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { outcome, type Person } from '#test/support/file-gateway.ts'
import {
  type RetrievalGateway,
  startRetrievalGateway,
  unreadable,
} from '#test/support/retrieval-gateway.ts'

/** Vector stores with the `openai` package. */

let database: TestDatabase
let gateway: RetrievalGateway
let openai: OpenAI
beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startRetrievalGateway(database)
  openai = gateway.openai(ann)
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const ann: Person = { subject: 'ann', groups: ['users'] }
const eve: Person = { subject: 'eve', groups: ['users'] }
const poll = { pollIntervalMs: 5 }

async function refusal(work: Promise<unknown>) {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof OpenAI.APIError)) throw new Error(`it was not refused: ${error}`)
  return `${error.status} ${error.code} ${error.param}`
}

test('a store may have any title and stores metadata', async () => {
  const store = await openai.vectorStores.create({
    name: 'Support FAQ (2026)',
    metadata: { team: 'support' },
  })
  expect(store).toMatchObject({
    object: 'vector_store',
    name: 'Support FAQ (2026)',
    metadata: { team: 'support' },
    status: 'completed',
    usage_bytes: 0,
    file_counts: { in_progress: 0, completed: 0, failed: 0, cancelled: 0, total: 0 },
  })
  expect(await openai.vectorStores.retrieve(store.id)).toEqual(store)
  const changed = await openai.vectorStores.update(store.id, { name: 'FAQ', metadata: null })
  expect(changed).toMatchObject({ id: store.id, name: 'FAQ', metadata: {} })
  const second = await openai.vectorStores.create({ name: 'Support FAQ (2026)' })
  expect(second).toMatchObject({ name: 'Support FAQ (2026)' })
  expect(second.id).not.toBe(store.id)
  expect((await openai.vectorStores.create({})).name).toStartWith('vs_')
})

test('a collection is a store by name and by id', async () => {
  const made = await gateway.send(ann, '/v1/collections', { json: { name: 'both-ways' } })
  const store = await openai.vectorStores.retrieve('both-ways')
  expect(store).toMatchObject({ id: made.body['id'], name: 'both-ways' })
  const named = await openai.vectorStores.create({ name: 'Of A Store' })
  expect(outcome(await gateway.send(ann, `/v1/collections/${named.id}`))).toBe('200')
  expect(outcome(await gateway.send(ann, '/v1/collections/of-a-store'))).toBe('200')
})

test('stores are paged', async () => {
  const dan = gateway.openai({ subject: 'dan', groups: ['users'] })
  for (const name of ['one', 'two', 'three']) await dan.vectorStores.create({ name })
  const names = []
  for await (const store of dan.vectorStores.list({ limit: 2, order: 'asc' }))
    names.push(store.name)
  expect(names).toEqual(['one', 'two', 'three'])
})

test('deleting a store keeps its files', async () => {
  const fileId = await gateway.files.upload(ann, 'stays.txt')
  const store = await openai.vectorStores.create({ file_ids: [fileId] })
  expect(store.file_counts.total).toBe(1)
  expect(await openai.vectorStores.delete(store.id)).toEqual({
    id: store.id,
    object: 'vector_store.deleted',
    deleted: true,
  })
  expect(await refusal(openai.vectorStores.retrieve(store.id))).toStartWith('404 not_found')
  expect(outcome(await gateway.files.send(ann, `/v1/files/${fileId}`))).toBe('200')
})

test('a store cannot be created with an unreadable file', async () => {
  const fileId = await gateway.files.upload(eve, 'hers.txt')
  const count = async () => (await openai.vectorStores.list({ limit: 100 })).data.length
  const before = await count()
  const made = openai.vectorStores.create({ name: 'no', file_ids: [fileId] })
  expect(await refusal(made)).toBe('404 not_found file_id')
  expect(await count()).toBe(before)
})

test('files are added, polled, described, listed and removed', async () => {
  const store = await openai.vectorStores.create({ name: 'files' })
  const fileId = await gateway.files.upload(ann, 'guide.txt', { text: 'How to\nknow what' })
  const file = await openai.vectorStores.files.createAndPoll(
    store.id,
    { file_id: fileId, attributes: { lang: 'en' } },
    poll,
  )
  expect(file).toMatchObject({
    id: fileId,
    object: 'vector_store.file',
    vector_store_id: store.id,
    status: 'completed',
    last_error: null,
    attributes: { lang: 'en' },
    usage_bytes: 16,
    chunking_strategy: {
      type: 'static',
      static: { max_chunk_size_tokens: 800, chunk_overlap_tokens: 100 },
    },
  })
  const place = { vector_store_id: store.id }
  expect(await openai.vectorStores.files.retrieve(fileId, place)).toEqual(file)
  const update = { ...place, attributes: { lang: 'de', year: 2026, isOld: false } }
  expect((await openai.vectorStores.files.update(fileId, update)).attributes).toEqual(
    update.attributes,
  )
  const ids = async (filter: 'completed' | 'failed' | 'cancelled' | 'in_progress') =>
    (await openai.vectorStores.files.list(store.id, { filter })).data.map(({ id }) => id)
  expect(await ids('completed')).toEqual([fileId])
  expect(await ids('failed')).toEqual([])
  expect(await ids('cancelled')).toEqual([])
  expect(await openai.vectorStores.files.delete(fileId, place)).toMatchObject({ deleted: true })
  expect(await refusal(openai.vectorStores.files.retrieve(fileId, place))).toStartWith('404')
})

test('an unreadable file fails with an error', async () => {
  const store = await openai.vectorStores.create({})
  const fileId = await gateway.files.upload(ann, 'broken.txt', { text: unreadable })
  const file = await openai.vectorStores.files.createAndPoll(store.id, { file_id: fileId }, poll)
  expect(file).toMatchObject({ status: 'failed', last_error: { code: 'invalid_file' } })
  expect(await openai.vectorStores.retrieve(store.id)).toMatchObject({
    status: 'completed',
    file_counts: { failed: 1, total: 1 },
  })
})

test('a batch is added and counted', async () => {
  const store = await openai.vectorStores.create({})
  const alone = await gateway.files.upload(ann, 'alone.txt')
  await openai.vectorStores.files.createAndPoll(store.id, { file_id: alone }, poll)
  const ids = [await gateway.files.upload(ann, 'b1.txt'), await gateway.files.upload(ann, 'b2.txt')]
  const batch = await openai.vectorStores.fileBatches.createAndPoll(
    store.id,
    { file_ids: [...ids, ...ids], attributes: { batch: 1 } },
    poll,
  )
  expect(batch).toMatchObject({
    object: 'vector_store.files_batch',
    vector_store_id: store.id,
    status: 'completed',
    file_counts: { completed: 2, total: 2 },
  })
  expect(Math.abs(batch.created_at - Date.now() / 1_000)).toBeLessThan(600)
  const files = await openai.vectorStores.fileBatches.listFiles(batch.id, {
    vector_store_id: store.id,
  })
  expect(files.data.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
  const unknown = openai.vectorStores.fileBatches.retrieve(crypto.randomUUID(), {
    vector_store_id: store.id,
  })
  expect(await refusal(unknown)).toStartWith('404 not_found')
})

test('all files of a store have its chunking', async () => {
  const strategy = (max: number, overlap: number) => ({
    type: 'static' as const,
    static: { max_chunk_size_tokens: max, chunk_overlap_tokens: overlap },
  })
  const store = await openai.vectorStores.create({ chunking_strategy: strategy(400, 200) })
  const fileId = await gateway.files.upload(ann, 'split.txt')
  const add = (chunking_strategy: OpenAI.VectorStores.FileChunkingStrategyParam) =>
    openai.vectorStores.files.create(store.id, { file_id: fileId, chunking_strategy })
  expect((await add(strategy(400, 200))).chunking_strategy).toEqual(strategy(400, 200))
  expect((await add({ type: 'auto' })).chunking_strategy).toEqual(strategy(400, 200))
  expect(await refusal(add(strategy(800, 200)))).toBe('400 invalid_request chunking_strategy')
  const overlapping = openai.vectorStores.create({ chunking_strategy: strategy(400, 201) })
  expect(await refusal(overlapping)).toBe(
    '400 invalid_request chunking_strategy.static.chunk_overlap_tokens',
  )
})

test('a store expires after days without use, and not while it is used', async () => {
  const days = (count: number) => ({ anchor: 'last_active_at' as const, days: count })
  const store = await openai.vectorStores.create({ name: 'brief', expires_after: days(7) })
  expect(store).toMatchObject({ expires_after: days(7), expires_at: store.created_at + 7 * 86_400 })
  const fileId = await gateway.files.upload(ann, 'brief.txt', { text: 'apples' })
  await openai.vectorStores.files.createAndPoll(store.id, { file_id: fileId })
  /** Moves the last use into the past. */
  const rest = (age: string) =>
    database.drizzle.execute(sql`
      update collection set created_at = now() - ${age}::interval, last_active_at = null
      where id = ${store.id}::uuid`)
  const search = () => openai.vectorStores.search(store.id, { query: 'apples' })
  await rest('6 days')
  expect((await search()).data).toHaveLength(1)
  const used = await openai.vectorStores.retrieve(store.id)
  expect(used.expires_at ?? 0).toBeGreaterThan(Date.now() / 1_000 + 6.9 * 86_400)
  await gateway.collections.expire()
  expect((await openai.vectorStores.retrieve(store.id)).file_counts.total).toBe(1)

  await rest('8 days')
  expect(await refusal(search())).toStartWith('400 vector_store_expired')
  const added = openai.vectorStores.files.create(store.id, { file_id: fileId })
  expect(await refusal(added)).toStartWith('400 vector_store_expired')
  expect((await openai.vectorStores.retrieve(store.id)).status).toBe('expired')
  await gateway.collections.expire()
  expect(await openai.vectorStores.retrieve(store.id)).toMatchObject({
    status: 'expired',
    file_counts: { total: 0 },
  })
  const renewed = await openai.vectorStores.update(store.id, { expires_after: days(365) })
  expect(renewed).toMatchObject({ status: 'completed', expires_after: days(365) })
  const kept = await openai.vectorStores.update(store.id, { expires_after: null })
  expect(kept).toMatchObject({ expires_after: null, expires_at: null })
})

test.each([0, 366, 1.5])('%d days until expiry are refused', async (days) => {
  const expires_after = { anchor: 'last_active_at' as const, days }
  expect(await refusal(openai.vectorStores.create({ expires_after }))).toStartWith('400')
})

test('stores and files of others are not found', async () => {
  const store = await openai.vectorStores.create({ name: 'hidden' })
  const fileId = await gateway.files.upload(ann, 'hidden.txt')
  await openai.vectorStores.files.create(store.id, { file_id: fileId })
  const stranger = gateway.openai(eve)
  const place = { vector_store_id: store.id }
  for (const ask of [
    () => stranger.vectorStores.retrieve(store.id),
    () => stranger.vectorStores.update(store.id, { name: 'mine' }),
    () => stranger.vectorStores.delete(store.id),
    () => stranger.vectorStores.search(store.id, { query: 'x' }),
    () => stranger.vectorStores.files.list(store.id),
    () => stranger.vectorStores.files.retrieve(fileId, place),
    () => stranger.vectorStores.files.delete(fileId, place),
    () => stranger.vectorStores.fileBatches.create(store.id, { file_ids: [fileId] }),
  ]) {
    expect(await refusal(Promise.resolve(ask()))).toStartWith('404 not_found')
  }
})
