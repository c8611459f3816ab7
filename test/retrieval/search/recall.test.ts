import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import type { Embedders } from '#embedding/embedder.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import { createChunkTables } from '#retrieval/index/tables.ts'
import { createSearch } from '#retrieval/search/create-search.ts'
import { type SearchTuning, searchTuning } from '#retrieval/search/hit-store.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { createDice } from '#test/support/dice.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { storeCollection, storeIngested } from '#test/support/stored-collections.ts'
import { storeNodes, storeShares } from '#test/support/stored-files.ts'

/**
 * The recall of vector search for callers who may read few of many passages. With default settings, a
 * filtered graph scan silently returns a part of them, or none.
 */

const dims = 48
const chunksPerFile = 10
const fileCount = 2_400
const clusterCount = 60
const queryCount = 30
const wanted = 10
const shares = [0.01, 0.02, 0.05, 0.5]

const dice = createDice(5)
const chance = () => dice.upTo(1_000_000) / 1_000_000 - 0.5
const clusters = Array.from({ length: clusterCount }, () => vectorOf(chance))
const owner = crypto.randomUUID()
const readers = shares.map((share) => ({ share, userId: crypto.randomUUID() }))

type Chunk = { id: string; file: number; vector: Float32Array }
const files = Array.from({ length: fileCount }, () => Bun.randomUUIDv7())
const chunks: Chunk[] = Array.from({ length: fileCount * chunksPerFile }, (_, at) => ({
  id: Bun.randomUUIDv7(),
  file: Math.floor(at / chunksPerFile),
  vector: near(),
}))
const queries = new Map(Array.from({ length: queryCount }, (_, at) => [`query ${at}`, near()]))

let database: TestDatabase
beforeAll(async () => {
  database = await openTestDatabase()
  await fill()
  // Needs 20 s of one core, which other tests share.
})
afterAll(async () => {
  await database.close()
})

test.each(readers)(
  'for a visible share of $share, all visible passages are compared',
  async (reader) => {
    const tuning = { ...rightsFirst, exactChunksMax: searchTuning.exactChunksMax }
    const recall = reader.share < 0.1 ? 1 : expect.closeTo(1, 0.1)
    expect(await ask(reader, tuning)).toEqual({ short: 0, strange: 0, recall })
  },
)

test.each(readers)(
  'for a visible share of $share, candidates are ranked before rights are checked',
  async (reader) => {
    const { short, strange, recall } = await ask(reader, {
      ...searchTuning,
      rightsFirstFilesMax: 0,
    })
    expect([short, strange]).toEqual([0, 0])
    expect(recall).toBeGreaterThanOrEqual(0.9)
  },
)

test.each(readers)(
  'for a visible share of $share, the graph has high recall and enough hits',
  async (reader) => {
    const { short, strange, recall } = await ask(reader, byGraph)
    expect([short, strange]).toEqual([0, 0])
    expect(recall).toBeGreaterThanOrEqual(0.9)
  },
)

test('without the graph settings, recall is low and hits are missing', async () => {
  const [reader] = readers
  const { short, recall } = await ask(reader, { ...byGraph, graphSettings: {} })
  expect(short).toBeGreaterThan(0)
  expect(recall).toBeLessThan(0.9)
})

test('too few hits of the graph trigger an exact search', async () => {
  const [reader] = readers
  const tuning = { ...byGraph, graphSettings: {}, exactWhenShort: true }
  expect(await ask(reader, tuning)).toMatchObject({ short: 0, recall: 1 })
})

const rightsFirst: SearchTuning = { ...searchTuning, rightsFirstFilesMax: Number.MAX_SAFE_INTEGER }
const byGraph: SearchTuning = { ...rightsFirst, exactChunksMax: 0, exactWhenShort: false }

async function ask(reader: (typeof readers)[number] | undefined, tuning: SearchTuning) {
  const userId = reader?.userId ?? ''
  const visible = visibleTo(reader?.share ?? 0)
  const settings = { retrieval_k: wanted, rerank_top_n: null, reranker_model: null }
  const search = createSearch({
    database,
    log: quietLog,
    embedders,
    tuning,
    settings: { current: () => settings },
    rerankers: { find: () => Promise.reject(new Error('there is none')) },
  })
  let [short, strange, found] = [0, 0, 0]
  for (const query of queries.keys()) {
    const request = { collections: ['all'], queries: [query], filters: [], mode: 'vector' } as const
    const signal = new AbortController().signal
    const context = createBackgroundContext(signal, { userId, groups: [] })
    const limits = { topK: wanted, scoreMin: null, rerank: null }
    const { results } = await search(context, { ...request, ...limits })
    if (results.length < wanted) short += 1
    strange += results.filter(({ chunk }) => !visible.ids.has(chunk.id)).length
    const nearest = visible.nearest.get(query)
    found += results.filter(({ chunk }) => nearest?.has(chunk.id)).length
    const scores = results.map(({ score }) => score)
    expect(scores).toEqual(scores.toSorted((one, other) => other - one))
  }
  return { short, strange, recall: Math.round((found / (queryCount * wanted)) * 100) / 100 }
}

const embedders: Embedders = {
  find: async (model) => ({
    model,
    embed: async (texts) => ({
      vectors: texts.map((text) => queries.get(text) ?? new Float32Array(dims)),
      dims,
      inputTokens: null,
    }),
  }),
}

function isReadBy(file: number, share: number): boolean {
  return file % Math.round(1 / share) === 0
}

type Visible = { ids: ReadonlySet<string>; nearest: ReadonlyMap<string, ReadonlySet<string>> }
const known = new Map<number, Visible>()

/** What a reader may see, and which of it is nearest to each query: compared once for all tests. */
function visibleTo(share: number): Visible {
  const visible = chunks.filter(({ file }) => isReadBy(file, share))
  const seen = known.get(share) ?? {
    ids: new Set(visible.map(({ id }) => id)),
    nearest: new Map(
      Array.from(queries, ([query, vector]) => [query, new Set(nearestOf(visible, vector))]),
    ),
  }
  known.set(share, seen)
  return seen
}

function nearestOf(visible: readonly Chunk[], query: Float32Array): readonly string[] {
  return visible
    .map(({ id, vector }) => ({ id, likeness: cosine(vector, query) }))
    .toSorted((one, other) => other.likeness - one.likeness)
    .slice(0, wanted)
    .map(({ id }) => id)
}

function cosine(one: Float32Array, other: Float32Array): number {
  let [dot, oneSquare, otherSquare] = [0, 0, 0]
  for (let at = 0; at < dims; at++) {
    const [a = 0, b = 0] = [one[at], other[at]]
    dot += a * b
    oneSquare += a * a
    otherSquare += b * b
  }
  return dot / Math.sqrt(oneSquare * otherSquare)
}

function near(): Float32Array {
  const cluster = clusters[dice.upTo(clusterCount)]
  return vectorOf((at) => (cluster?.[at] ?? 0) + chance() * 0.6)
}

function vectorOf(value: (at: number) => number): Float32Array {
  return Float32Array.from({ length: dims }, (_, at) => value(at))
}

const noJobs = { add: async () => {}, process: () => ({ stop() {} }) }

/** The rows of an ingest and a graph; the embedded engine has graphs in tests only. */
async function fill(): Promise<void> {
  const { drizzle, kind } = database
  const tables = createChunkTables({ database, jobs: noJobs, now: () => new Date() })
  const spec = {
    model: 'm',
    dims,
    chunkTokensMax: 800,
    chunkOverlapTokens: 100,
    partTokensMax: null,
  }
  const index = await tables.provide(spec)
  const collectionId = crypto.randomUUID()
  await storeNodes(
    database,
    files.map((id) => ({ id, ownerId: owner, parentId: null })),
  )
  const indexed = { indexId: index.id, fileIds: files }
  const collection = { ...indexed, id: collectionId, name: 'all', ownerId: owner }
  await storeCollection(database, collection)
  await storeIngested(database, { ...indexed, chunksPerFile })
  const table = sql.raw(`chunk_${index.id}`)
  const type = sql.raw(kind === 'pglite' ? 'vector' : 'halfvec')
  for (let at = 0; at < chunks.length; at += 1_000) {
    const rows = chunks.slice(at, at + 1_000).map(({ id, file, vector }, offset) => ({
      id,
      file_id: files[file],
      ordinal: (at + offset) % chunksPerFile,
      e: `[${Array.from(vector, (value) => value.toFixed(5)).join(',')}]`,
    }))
    await drizzle.execute(sql`
      insert into ${table} (id, file_id, ordinal, text, start_char, end_char, tsv, e)
      select id, file_id, ordinal, '', 0, 0, '', e::${type}
      from json_to_recordset(${JSON.stringify(rows)}::json)
        as row(id uuid, file_id uuid, ordinal integer, e text)`)
  }
  await storeShares(database, [
    ...readers.map(({ userId }) => shareOf('collection', collectionId, userId)),
    ...readers.flatMap(({ share, userId }) =>
      files.filter((_, at) => isReadBy(at, share)).map((id) => shareOf('node', id, userId)),
    ),
  ])
  const graph = sql.raw(`chunk_${index.id}_graph`)
  await drizzle.execute(sql`
    create index ${graph} on ${table} using hnsw (e ${sql.raw(kind === 'pglite' ? 'vector_cosine_ops' : 'halfvec_cosine_ops')})`)
}

function shareOf(resourceType: 'node' | 'collection', resourceId: string, userId: string) {
  return { resourceType, resourceId, principalType: 'user', principalId: userId, role: 1 } as const
}
