import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { createJobs, type Jobs } from '#jobs/jobs.ts'
import type { ChunkIndex, EmbeddedChunk } from '#retrieval/index/chunk.ts'
import { type ChunkTables, createChunkTables } from '#retrieval/index/tables.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { storeNodes } from '#test/support/stored-files.ts'

let database: TestDatabase
let jobs: Jobs
let tables: ChunkTables
beforeAll(async () => {
  database = await openTestDatabase()
  jobs = await createJobs({ database, log: quietLog })
  // Delayed jobs are due immediately.
  tables = createChunkTables({ database, jobs, now: () => new Date(0) })
})
afterAll(async () => {
  await jobs.close()
  await database.close()
})

const spec = {
  model: 'm',
  dims: 3,
  chunkTokensMax: 800,
  chunkOverlapTokens: 100,
  partTokensMax: null,
}

/** A file that is pending in the index. */
async function fileFor({ id: indexId }: ChunkIndex): Promise<string> {
  const id = Bun.randomUUIDv7()
  await storeNodes(database, [{ id, ownerId: crypto.randomUUID(), parentId: null }])
  await database.drizzle.execute(sql`
    insert into file_index (file_id, index_id, state, updated_at)
    values (${id}::uuid, ${indexId}, 'pending', now())`)
  return id
}

function chunk(ordinal: number, rest: Partial<EmbeddedChunk> = {}): EmbeddedChunk {
  const vector = Float32Array.of(1, ordinal, -1)
  return { ordinal, text: `text ${ordinal}`, page: null, start: 0, end: 1, vector, ...rest }
}

function replace(index: ChunkIndex, fileId: string, chunks: readonly EmbeddedChunk[]) {
  return database.drizzle.transaction((transaction) =>
    tables.replace(transaction, index, fileId, chunks),
  )
}

type Row = { ordinal: number; text: string; page: number | null; e: string }

function rowsOf({ id }: ChunkIndex, fileId: string) {
  return database.drizzle.execute<Row>(sql`
    select ordinal, text, page, e::text as e from ${sql.raw(`chunk_${id}`)}
    where file_id = ${fileId}::uuid order by ordinal`)
}

function hasTable(name: string): Promise<boolean> {
  return database.drizzle
    .execute(sql`select 1 where to_regclass(${name}) is not null`)
    .then((rows) => rows.length > 0)
}

test('concurrent requests for the same index create one', async () => {
  const provided = await Promise.all([1, 2, 3, 4].map(() => tables.provide(spec)))
  expect(new Set(provided.map(({ id }) => id)).size).toBe(1)
  const [index] = provided
  expect(index).toMatchObject({ ...spec, state: 'active' })
  expect(await tables.find(index?.id ?? 0)).toEqual(index)
})

test('a reindex creates a second index', async () => {
  const active = await tables.provide(spec)
  const target = await tables.create(spec)
  expect(target).toMatchObject({ ...spec, state: 'building' })
  expect(target.id).not.toBe(active.id)
  expect(await tables.provide(spec)).toEqual(active)
})

test('dropping an index deletes its table and file rows', async () => {
  const index = await tables.create(spec)
  const fileId = await fileFor(index)
  await replace(index, fileId, [chunk(0)])
  await tables.drop(index.id)
  expect(await tables.find(index.id)).toBeUndefined()
  expect(await hasTable(`chunk_${index.id}`)).toBe(false)
  const left = await database.drizzle.execute(sql`
    select 1 from file_index where file_id = ${fileId}::uuid`)
  expect(left).toHaveLength(0)
})

test('new passages replace the old ones', async () => {
  const index = await tables.provide(spec)
  const fileId = await fileFor(index)
  await replace(index, fileId, [chunk(0), chunk(1), chunk(2)])
  await replace(index, fileId, [chunk(0, { text: 'new', page: 7 })])
  expect(await rowsOf(index, fileId)).toMatchObject([{ ordinal: 0, text: 'new', page: 7 }])
})

test('concurrent ingests of a file store it once', async () => {
  const index = await tables.provide(spec)
  const fileId = await fileFor(index)
  const chunks = [chunk(0), chunk(1)]
  await Promise.all([1, 2, 3].map(() => replace(index, fileId, chunks)))
  expect((await rowsOf(index, fileId)).map(({ ordinal }) => ordinal)).toEqual([0, 1])
})

test('passages of a file that the index does not need are not stored', async () => {
  const index = await tables.provide(spec)
  const fileId = Bun.randomUUIDv7()
  await storeNodes(database, [{ id: fileId, ownerId: crypto.randomUUID(), parentId: null }])
  await replace(index, fileId, [chunk(0)])
  expect(await rowsOf(index, fileId)).toHaveLength(0)
})

test('characters that PostgreSQL cannot store are replaced', async () => {
  const index = await tables.provide(spec)
  const fileId = await fileFor(index)
  const long = 'x'.repeat(100_000)
  await replace(index, fileId, [chunk(0, { text: 'a\0b \ud800' }), chunk(1, { text: long })])
  expect((await rowsOf(index, fileId)).map(({ text }) => text)).toEqual(['a\ufffdb \ufffd', long])
})

test('vectors are normalized', async () => {
  const index = await tables.provide(spec)
  const fileId = await fileFor(index)
  const chunks = [1e-30, 1, 1e30].map((length, at) =>
    chunk(at, { vector: Float32Array.of(3 * length, 0, -4 * length) }),
  )
  await replace(index, fileId, chunks)
  for (const { e } of await rowsOf(index, fileId)) {
    const [x, y, z] = JSON.parse(e)
    expect([x, y, z].map((value) => Math.round(value * 100))).toEqual([60, 0, -80])
  }
})

test('vectors of other dimensions are refused', async () => {
  const index = await tables.provide(spec)
  const fileId = await fileFor(index)
  const wrong = replace(index, fileId, [chunk(0), chunk(1, { vector: Float32Array.of(1, 2) })])
  await expect(wrong).rejects.toMatchObject({ kind: 'upstream_invalid_answer' })
  expect(await rowsOf(index, fileId)).toHaveLength(0)
})

test('vectors up to the maximum dimensions are stored, longer ones refused', async () => {
  const index = await tables.provide({ ...spec, dims: 4_096 })
  const fileId = await fileFor(index)
  await replace(index, fileId, [chunk(0, { vector: new Float32Array(4_096).fill(1) })])
  expect(await rowsOf(index, fileId)).toHaveLength(1)
  await expect(tables.provide({ ...spec, dims: 16_001 })).rejects.toMatchObject({
    wireCode: 'too_many_dimensions',
  })
})

test('PostgreSQL builds a graph for a large index, the embedded engine does not', async () => {
  const index = await tables.create(spec)
  const fileId = await fileFor(index)
  const graph = `chunk_${index.id}_graph`
  const [small, large] = [1_000, 10_001].map((count) =>
    Array.from({ length: count }, (_, at) => chunk(at, { text: '' })),
  )
  const isIdle = async () => {
    const queued = await database.drizzle.execute(
      sql`select 1 from job where queue = 'chunk-graph'`,
    )
    return queued.length === 0
  }
  await replace(index, fileId, small ?? [])
  await eventually('the index was looked at', isIdle)
  expect(await hasTable(graph)).toBe(false)
  await replace(index, fileId, large ?? [])
  await eventually('the index was looked at again', isIdle)
  expect(await hasTable(graph)).toBe(database.kind === 'postgres')
})
