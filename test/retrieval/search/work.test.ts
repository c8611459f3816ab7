import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { type SearchTuning, searchTuning } from '#retrieval/search/hit-store.ts'
import { openTestDatabase, serverUrl, type TestDatabase } from '#test/support/database.ts'
import { storeNodes, storeShares } from '#test/support/stored-files.ts'
import { searchPassages, storePassages } from '#test/support/stored-passages.ts'

/**
 * The embedded engine has no table statistics, so a plan may become quadratic in the number of files.
 * Counts the rows read instead of measuring time.
 */

const fileCount = 800
const passagesPerFile = 3
const dims = 4
const owner = crypto.randomUUID()

let database: TestDatabase
let chunkTable: string
beforeAll(async () => {
  database = await openTestDatabase()
  const files = new Map(
    Array.from({ length: fileCount }, (_, number) => [
      Bun.randomUUIDv7() as string,
      Array.from({ length: passagesPerFile }, (_, ordinal) => ({
        text: `word ${number} ${ordinal}`,
        vector: vectorOf(number * passagesPerFile + ordinal),
      })),
    ]),
  )
  const stored = await storePassages(database, { ownerId: owner, files })
  chunkTable = stored.chunkTable
})
afterAll(async () => {
  await database.close()
})

test.skipIf(serverUrl !== undefined)(
  'the work of a search is linear in files and passages',
  async () => {
    const read = await rowsReadBy(searchTuning)
    const passages = fileCount * passagesPerFile
    expect(read(chunkTable)).toBeWithin(passages, 10 * passages)
    for (const table of ['file_index', 'collection_file', 'node']) {
      expect(read(table), table).toBeWithin(fileCount, 20 * fileCount)
    }
  },
)

test.skipIf(serverUrl !== undefined)(
  'a search of a large collection checks the rights of candidates only',
  async () => {
    await database.drizzle.execute(sql`
      create index ${sql.identifier(`${chunkTable}_graph`)} on ${sql.identifier(chunkTable)}
      using hnsw (e vector_cosine_ops)`)
    const tuning = { ...searchTuning, rightsFirstFilesMax: fileCount / 2, candidatesPerHit: 1 }
    const read = await rowsReadBy(tuning)
    expect(read('file_index')).toBeWithin(1, fileCount)
  },
)

test.skipIf(serverUrl !== undefined)(
  'the work is linear for files shared by a manager',
  async () => {
    const [manager, stranger] = [crypto.randomUUID(), crypto.randomUUID()]
    const folderId = Bun.randomUUIDv7()
    const node = { id: folderId, ownerId: owner, parentId: null, isFolder: true }
    await storeNodes(database, [node])
    const [row] = await database.drizzle.execute<{ id: string }>(sql`select id from collection`)
    const shared = { principalType: 'user', principalId: manager, role: 3 } as const
    await storeShares(database, [
      { ...shared, resourceType: 'node', resourceId: folderId },
      { ...shared, resourceType: 'collection', resourceId: row?.id ?? '', principalId: stranger },
    ])
    await database.drizzle.execute(sql`
      update node set parent_id = ${folderId}::uuid where kind = 'file'`)
    await database.drizzle.execute(sql`update collection set access_mode = 'collection'`)
    await database.drizzle.execute(sql`
      update collection_file set shared_by = ${manager}::uuid`)
    const read = await rowsReadBy(searchTuning, stranger)
    for (const table of ['file_index', 'collection_file', 'node']) {
      expect(read(table), table).toBeWithin(fileCount, 30 * fileCount)
    }
  },
)

/** The rows read per table by one search in each mode. */
async function rowsReadBy(
  tuning: SearchTuning,
  userId = owner,
): Promise<(table: string) => number> {
  const before = await rowsRead()
  for (const mode of ['hybrid', 'keyword', 'vector'] as const) {
    const params = { userId, query: 'word', mode, topK: 10, tuning, vector: vectorOf(7) }
    expect(await searchPassages(database, params)).toHaveLength(10)
  }
  const after = await rowsRead()
  return (table) => (after.get(table) ?? 0) - (before.get(table) ?? 0)
}

async function rowsRead(): Promise<ReadonlyMap<string, number>> {
  await database.drizzle.execute(sql`select pg_stat_force_next_flush()`)
  const rows = await database.drizzle.execute<{ relname: string; read: number }>(sql`
    select relname, (coalesce(idx_tup_fetch, 0) + seq_tup_read)::float8 as read
    from pg_stat_user_tables`)
  return new Map(rows.map(({ relname, read }) => [relname, read]))
}

function vectorOf(seed: number): Float32Array {
  return Float32Array.from({ length: dims }, (_, at) => Math.sin((seed + 1) * (at + 1)))
}
