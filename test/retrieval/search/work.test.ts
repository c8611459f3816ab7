import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { createChunkTables } from '#retrieval/index/tables.ts'
import { createSearch } from '#retrieval/search/create-search.ts'
import { openTestDatabase, quietLog, serverUrl, type TestDatabase } from '#test/support/database.ts'
import { storeCollection, storeIngested } from '#test/support/stored-collections.ts'
import { storeNodes } from '#test/support/stored-files.ts'

/**
 * The embedded engine knows nothing about the size of its tables, and so would choose ways through
 * them whose work grows with the square of the files. What it reads is counted here, not timed.
 */

const fileCount = 800
const passagesPerFile = 3
const dims = 4
const owner = crypto.randomUUID()
const caller = { userId: owner, groups: [] }
const files = Array.from({ length: fileCount }, () => Bun.randomUUIDv7())

let database: TestDatabase
let chunkTable: string
beforeAll(async () => {
  database = await openTestDatabase()
  chunkTable = await fill()
})
afterAll(async () => {
  await database.close()
})

test.skipIf(serverUrl !== undefined)(
  'a search reads each file and each passage a few times, however many there are',
  async () => {
    const before = await rowsRead()
    expect(await search('hybrid')).toBe(10)
    expect(await search('keyword')).toBe(10)
    expect(await search('vector')).toBe(10)
    const after = await rowsRead()
    const read = (table: string) => (after.get(table) ?? 0) - (before.get(table) ?? 0)
    const passages = fileCount * passagesPerFile
    expect(read(chunkTable)).toBeWithin(passages, 10 * passages)
    for (const table of ['file_index', 'collection_file', 'node']) {
      expect(read(table), table).toBeWithin(fileCount, 20 * fileCount)
    }
  },
)

async function rowsRead(): Promise<ReadonlyMap<string, number>> {
  await database.drizzle.execute(sql`select pg_stat_force_next_flush()`)
  const rows = await database.drizzle.execute<{ relname: string; read: number }>(sql`
    select relname, (coalesce(idx_tup_fetch, 0) + seq_tup_read)::float8 as read
    from pg_stat_user_tables`)
  return new Map(rows.map(({ relname, read }) => [relname, read]))
}

async function search(mode: 'hybrid' | 'keyword' | 'vector'): Promise<number> {
  const settings = { retrievalK: 10, rerankTopN: null, rerankModel: null, embeddingModel: 'm' }
  const find = createSearch({
    ...{ database, log: quietLog, settings: () => settings },
    embedders: {
      find: async (model) => ({
        model,
        embed: async () => ({ vectors: [vectorOf(7)], dims, inputTokens: null }),
      }),
    },
    rerankers: { find: () => Promise.reject(new Error('there is none')) },
  })
  const request = { collections: ['all'], queries: ['word'], filters: [], mode } as const
  const { results } = await find(
    caller,
    { ...request, topK: 10, scoreMin: null, rerank: null },
    new AbortController().signal,
  )
  return results.length
}

function vectorOf(seed: number): Float32Array {
  return Float32Array.from({ length: dims }, (_, at) => Math.sin((seed + 1) * (at + 1)))
}

/** The rows as an ingest leaves them, without statistics; gives the name of the passages' table. */
async function fill(): Promise<string> {
  const { drizzle } = database
  const jobs = { add: async () => {}, work: () => {} }
  const tables = createChunkTables({ database, jobs, now: () => new Date() })
  const spec = { model: 'm', dims, chunkTokensMax: 800, chunkOverlapTokens: 100 }
  const index = await tables.provide(spec)
  await storeNodes(
    database,
    files.map((id) => ({ id, ownerId: owner, parentId: null })),
  )
  const indexed = { indexId: index.id, fileIds: files }
  const collection = { ...indexed, id: crypto.randomUUID(), name: 'all', ownerId: owner }
  await storeCollection(database, collection)
  await storeIngested(database, { ...indexed, chunksPerFile: passagesPerFile })
  for (const [number, fileId] of files.entries()) {
    const chunks = Array.from({ length: passagesPerFile }, (_, ordinal) => ({
      ...{ ordinal, text: `word ${number} ${ordinal}`, page: null, start: 0, end: 1 },
      vector: vectorOf(number * passagesPerFile + ordinal),
    }))
    await drizzle.transaction((transaction) => tables.replace(transaction, index, fileId, chunks))
  }
  return `chunk_${index.id}`
}
