import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { createLocalHashEmbedder } from '#embedding/local-hash.ts'
import { AppError } from '#lib/errors.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import type { ChunkIndex } from '#retrieval/index/chunk.ts'
import type { SearchRequest, SearchResponse } from '#retrieval/search/search.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { type Person, principalOf } from '#test/support/file-gateway.ts'
import { type RetrievalGateway, startRetrievalGateway } from '#test/support/retrieval-gateway.ts'

/** Searches during a reindex, and of several collections. */

let database: TestDatabase
let gateway: RetrievalGateway
let source: ChunkIndex
let target: ChunkIndex
const fileIds: string[] = []
const embeddedQueries: string[] = []
beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startRetrievalGateway(database)
  const plain = createLocalHashEmbedder()
  gateway.embedders.set('shorter', {
    model: 'shorter',
    async embed(texts, options) {
      if (options.purpose === 'query') embeddedQueries.push(...texts)
      return plain.embed(texts, { ...options, dims: 128 })
    },
  })
  await gateway.send(ann, '/v1/collections', { json: { name: 'docs' } })
  for (const at of [0, 1, 2, 3]) {
    fileIds.push(
      await gateway.files.upload(ann, `f${at}.txt`, {
        text: `apples of file ${at}\npears of file ${at}`,
        collections: ['docs'],
      }),
    )
  }
  await gateway.settled()
  const { index } = await gateway.collections.find(principalOf(ann), 'docs')
  source = (await gateway.tables.find(index.id)) ?? source
  target = await gateway.tables.create({ ...source, model: 'shorter', dims: 128 })
  await database.drizzle.execute(sql`update collection set target_index_id = ${target.id}`)
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const ann: Person = { subject: 'ann', groups: ['users'] }

function search(request: Partial<SearchRequest>): Promise<SearchResponse> {
  const signal = new AbortController().signal
  return gateway.search(createBackgroundContext(signal, principalOf(ann)), {
    collections: ['docs'],
    queries: ['apples'],
    filters: [],
    topK: 50,
    scoreMin: null,
    mode: 'hybrid',
    rerank: null,
    ...request,
  })
}

/** The results as `file:ordinal`. */
async function passages(request: Partial<SearchRequest> = {}): Promise<string[]> {
  const { results } = await search(request)
  return results.map(({ filename, chunk }) => `${filename}:${chunk.index}`).toSorted()
}

const everything = [0, 1, 2, 3].flatMap((at) => [`f${at}.txt:0`, `f${at}.txt:1`])

async function indexOfResults(): Promise<Record<string, string>> {
  const { results } = await search({})
  const found: Record<string, string> = {}
  for (const { filename, chunk } of results) {
    for (const { id } of [source, target]) {
      const rows = await database.drizzle.execute(sql`
        select 1 from ${sql.raw(`chunk_${id}`)} where id = ${chunk.id}::uuid`)
      if (rows.length > 0) found[filename] = id === source.id ? 'source' : 'target'
    }
  }
  return found
}

async function bring(fileId: string | undefined): Promise<void> {
  await database.drizzle.transaction(async (transaction) => {
    await transaction.execute(sql`
      insert into file_index (file_id, index_id, state, updated_at)
      values (${fileId ?? ''}::uuid, ${target.id}, 'pending', now())`)
    await gateway.jobs.add(transaction, {
      queue: 'ingest',
      key: null,
      payload: { fileId, indexId: target.id },
    })
  })
  await gateway.settled()
}

test('each file is found in one index, the target once it is there', async () => {
  expect(await passages()).toEqual(everything)
  expect(new Set(Object.values(await indexOfResults()))).toEqual(new Set(['source']))
  await bring(fileIds[0])
  await bring(fileIds[1])
  expect(await passages()).toEqual(everything)
  expect(await indexOfResults()).toEqual({
    'f0.txt': 'target',
    'f1.txt': 'target',
    'f2.txt': 'source',
    'f3.txt': 'source',
  })
})

test('both models embed the query, and the response lists both indexes', async () => {
  embeddedQueries.length = 0
  const answer = await search({ queries: ['apples'] })
  expect(embeddedQueries).toEqual(['apples'])
  expect(answer.scoreKind).toBe('rrf')
  expect(answer.indexes).toEqual([
    { id: String(source.id), model: 'local-hash', role: 'source' },
    { id: String(target.id), model: 'shorter', role: 'target' },
  ])
  // Distances of two models are not comparable.
  expect((await search({ mode: 'vector' })).scoreKind).toBe('rrf')
})

test('a file that failed in the target is found in the source', async () => {
  await database.drizzle.execute(sql`
    insert into file_index (file_id, index_id, state, updated_at)
    values (${fileIds[2] ?? ''}::uuid, ${target.id}, 'failed', now())`)
  expect(await passages()).toEqual(everything)
  expect((await indexOfResults())['f2.txt']).toBe('source')
})

test('an upload during a reindex goes to the target only and is found', async () => {
  const fileId = await gateway.files.upload(ann, 'new.txt', {
    text: 'apples of new',
    collections: ['docs'],
  })
  await gateway.settled()
  expect(await passages()).toEqual([...everything, 'new.txt:0'])
  const rows = await database.drizzle.execute(sql`
    select index_id, state from file_index where file_id = ${fileId}::uuid`)
  expect(rows).toMatchObject([{ index_id: target.id, state: 'done' }])
})

test('a changed file is found by its former content until the new one is indexed', async () => {
  gateway.ingesting = false
  await gateway.files.upload(ann, 'new.txt', { text: 'cherries', onConflict: 'replace' })
  expect(await passages({ queries: ['apples'] })).toContain('new.txt:0')
  gateway.ingesting = true
  await gateway.settled()
  const { results } = await search({ queries: ['cherries'], topK: 1 })
  expect(results[0]).toMatchObject({ filename: 'new.txt', text: 'cherries' })
})

test('a failing embedding model degrades the search to keywords', async () => {
  const embedder = gateway.embedders.get('shorter')
  gateway.embedders.delete('shorter')
  const answer = await search({})
  expect(answer.degraded).toEqual(['vector'])
  // Keyword search still finds files in the target.
  expect(await passages({ queries: ['apples of file'] })).toEqual(
    expect.arrayContaining([...everything]),
  )
  if (embedder !== undefined) gateway.embedders.set('shorter', embedder)
})

test('without any embedding model, only keywords are searched', async () => {
  const kept = new Map(gateway.embedders)
  gateway.embedders.clear()
  const answer = await search({ queries: ['pears'] })
  expect(answer).toMatchObject({ degraded: ['vector'], scoreKind: 'text' })
  expect(answer.results[0]?.text).toContain('pears')
  await expect(search({ mode: 'vector' })).rejects.toMatchObject({ wireCode: 'index_unavailable' })
  for (const [model, embedder] of kept) gateway.embedders.set(model, embedder)
})

test('vectors of other dimensions are ignored', async () => {
  gateway.embedders.set('local-hash', {
    model: 'local-hash',
    embed: (texts, options) => createLocalHashEmbedder().embed(texts, { ...options, dims: 64 }),
  })
  expect((await search({})).degraded).toEqual(['vector'])
  gateway.embedders.set('local-hash', createLocalHashEmbedder())
})

test('a file in several collections is found once, in the first of them', async () => {
  await gateway.send(ann, '/v1/collections', { json: { name: 'more' } })
  await gateway.send(ann, '/v1/collections/more/files', {
    json: { file_id: fileIds[3], attributes: { tag: 'more' } },
  })
  await gateway.settled()
  const of = async (collections: string[], rest: Partial<SearchRequest> = {}) => {
    const { results } = await search({ collections, ...rest })
    const own = results.filter(({ fileId }) => fileId === fileIds[3])
    return own.map(({ collection }) => collection)
  }
  expect(await of(['docs', 'more'])).toEqual(['docs', 'docs'])
  expect(await of(['more', 'docs'])).toEqual(['more', 'more'])
  const filters = [{ field: 'tag', operator: '==', value: 'more' }] as const
  expect(await of(['docs', 'more'], { filters })).toEqual(['more', 'more'])
})

test('the results of several queries are merged', async () => {
  const { results } = await search({ queries: ['apples', 'pears'], topK: 50 })
  const ids = results.map(({ chunk }) => chunk.id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(results.every(({ score }) => score > 0 && score <= 1)).toBe(true)
})

test('a reranker orders and limits the results', async () => {
  const documents: string[][] = []
  gateway.rerankers.set('scorer', {
    model: 'scorer',
    async rerank(request) {
      documents.push([...request.documents])
      const scored = request.documents.map((text, index) => ({
        index,
        score: text.includes('pears of file 2') ? 0.9 : 0.1,
      }))
      return { results: scored.toSorted((a, b) => b.score - a.score), totalTokens: null }
    },
  })
  Object.assign(gateway.settings, { reranker_model: 'scorer', rerank_top_n: 2 })
  const answer = await search({ queries: ['apples'], topK: 3 })
  expect(answer.results.map(({ text, score }) => ({ text, score }))[0]).toEqual({
    text: 'pears of file 2',
    score: 0.9,
  })
  expect(answer).toMatchObject({ scoreKind: 'rerank', results: { length: 2 } })
  // The reranker gets more passages than are returned.
  expect(documents[0]?.length).toBeGreaterThan(3)
  expect((await search({ scoreMin: 0.5 })).results).toHaveLength(1)
  expect((await search({ rerank: false, topK: 3 })).scoreKind).toBe('rrf')
})

test('a failing reranker leaves the order unchanged', async () => {
  gateway.rerankers.set('scorer', {
    model: 'scorer',
    rerank: () => Promise.reject(new AppError('upstream_error', 'It fails.')),
  })
  const plain = await search({ rerank: false, topK: 2 })
  const answer = await search({ topK: 3 })
  expect(answer).toMatchObject({ degraded: ['reranker'], scoreKind: 'rrf' })
  expect(answer.results).toEqual(plain.results)
  Object.assign(gateway.settings, { reranker_model: null, rerank_top_n: null })
})

test('a search ends when its signal aborts', async () => {
  const aborted = AbortSignal.abort(new Error('the client disconnected'))
  const request: SearchRequest = {
    collections: ['docs'],
    queries: ['x'],
    filters: [],
    topK: 1,
    scoreMin: null,
    mode: 'hybrid',
    rerank: null,
  }
  await expect(
    gateway.search(createBackgroundContext(aborted, principalOf(ann)), request),
  ).rejects.toThrow('the client disconnected')
})

test('a reindex that completes during a search does not fail the search', async () => {
  await gateway.send(ann, '/v1/collections/more', { method: 'DELETE' })
  await database.drizzle.execute(sql`update collection set target_index_id = null`)
  const plain = createLocalHashEmbedder()
  gateway.embedders.set('local-hash', {
    model: 'local-hash',
    async embed(texts, options) {
      // Between the resolution of the collection and the search of its indexes.
      await database.drizzle.execute(sql`
        update collection set index_id = ${target.id}`)
      await gateway.tables.drop(source.id)
      return plain.embed(texts, options)
    },
  })
  const answer = await search({ queries: ['apples of file 0'], topK: 1 })
  expect(answer.results).toMatchObject([{ filename: 'f0.txt', chunk: { index: 0 } }])
  expect(answer.indexes).toEqual([{ id: String(target.id), model: 'shorter', role: 'source' }])
})
