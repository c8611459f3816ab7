import { sql } from 'drizzle-orm'
import { userIdOf } from '#auth/principal.ts'
import type { Database } from '#db/client.ts'
import type { JobHandler } from '#jobs/jobs.ts'
import { foldText } from '#lib/fold-text.ts'
import { chunkTable, vectorType } from '#retrieval/index/store.ts'
import { createChunkTables } from '#retrieval/index/tables.ts'
import { storeNodes } from '#test/support/stored-files.ts'
import { attributesOf, type Corpus, passagesPerFile } from './search-corpus.ts'
import type { BruteForceSearch } from './search-truth.ts'

export const collectionName = 'bench'

/** Longer statements permanently increase the memory of PGlite. */
const passagesPerStatement = 250
const filesPerStep = 500
/** Decimal digits of vector components; more than half precision has. */
const vectorScale = 1e5

export type FillJob = {
  readonly database: Database
  readonly model: string
  readonly dims: number
  /** Owner of the files and the collection. */
  readonly subject: string
  readonly passages: number
  readonly corpus: Corpus
  readonly truth: BruteForceSearch
  onProgress(done: number): void
}

export type Filled = {
  readonly fillMs: number
  /** Null without an index: for small tables, and in PGlite. */
  readonly graphMs: number | null
  readonly bytes: { readonly table: number; readonly words: number; readonly graph: number }
}

type ChunkRow = { id: string; file_id: string; ordinal: number; text: string; e: string }

/** Inserts rows like an ingest, in bulk, then builds the index as the gateway does. */
export async function fillCollection(job: FillJob): Promise<Filled> {
  const { database } = job
  const startedMs = performance.now()
  const { tables, buildGraph } = openTables(database)
  const spec = {
    model: job.model,
    dims: job.dims,
    chunkTokensMax: 800,
    chunkOverlapTokens: 100,
    partTokensMax: null,
  }
  const { id: indexId } = await tables.provide(spec)
  const place = { indexId, collectionId: await storeCollection(job, indexId) }
  const files = job.passages / passagesPerFile
  for (let first = 0; first < files; first += filesPerStep) {
    await fillStep(job, { ...place, first, count: Math.min(filesPerStep, files - first) })
    job.onProgress(Math.min(first + filesPerStep, files) * passagesPerFile)
  }
  // A server does this itself a minute later.
  if (database.kind === 'postgres') await database.drizzle.execute(sql`vacuum (analyze)`)
  const fillMs = performance.now() - startedMs
  const graphMs = await timed(() => buildGraph(indexId))
  const bytes = await sizesOf(database, indexId)
  return { fillMs, graphMs: bytes.graph > 0 ? graphMs : null, bytes }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

/** The gateway's own passage tables and index maintenance. */
function openTables(database: Database) {
  let handler: JobHandler | undefined
  const jobs = {
    add: async () => {},
    process(_queue: string, given: JobHandler) {
      handler = given
      return { stop() {} }
    },
  }
  const tables = createChunkTables({ database, jobs, now: () => new Date() })
  return {
    tables,
    async buildGraph(indexId: number) {
      const { signal } = new AbortController()
      await handler?.run({ id: 'bench', payload: { indexId }, attempt: 1, trace: null, signal })
    },
  }
}

async function storeCollection({ database, subject }: FillJob, indexId: number): Promise<string> {
  const id = crypto.randomUUID()
  await database.drizzle.execute(sql`
    insert into collection (id, name, owner_id, access_mode, index_id, created_at, updated_at)
    values (${id}::uuid, ${collectionName}, ${userIdOf(subject)}::uuid, 'files', ${indexId},
      now(), now())`)
  return id
}

type Step = { indexId: number; collectionId: string; first: number; count: number }

async function fillStep(job: FillJob, { indexId, collectionId, first, count }: Step) {
  const { database, subject } = job
  const ownerId = userIdOf(subject)
  const files = Array.from({ length: count }, (_, at) => ({
    number: first + at,
    node: {
      id: Bun.randomUUIDv7(),
      ownerId,
      parentId: null,
      attributes: attributesOf(first + at),
    },
  }))
  await storeNodes(
    database,
    files.map(({ node }) => node),
  )
  const ids = `{${files.map(({ node }) => node.id).join(',')}}`
  await database.drizzle.execute(sql`
    insert into collection_file (collection_id, file_id, attributes, followed, added_by, added_at)
    select ${collectionId}::uuid, id, '{}', false, ${ownerId}::uuid, now()
    from unnest(${ids}::uuid[]) id`)
  await database.drizzle.execute(sql`
    insert into file_index (file_id, index_id, state, sha256, chunks, updated_at)
    select id, ${indexId}, 'done', 'none', ${passagesPerFile}, now()
    from unnest(${ids}::uuid[]) id`)
  const rows = files.flatMap(({ number, node }) => rowsOf(job, number, node))
  for (let at = 0; at < rows.length; at += passagesPerStatement) {
    await storeChunks(database, indexId, rows.slice(at, at + passagesPerStatement))
  }
}

function rowsOf(
  { corpus, truth }: FillJob,
  file: number,
  { id: fileId, attributes }: { id: string; attributes: Record<string, string> },
): ChunkRow[] {
  const passages = corpus.file(file)
  const rows = passages.map(({ text, vector }, ordinal) => ({
    id: Bun.randomUUIDv7(),
    file_id: fileId,
    ordinal,
    text,
    e: vectorText(vector),
  }))
  truth.take(
    passages,
    rows.map(({ id }) => id),
    attributes,
  )
  return rows
}

async function storeChunks(database: Database, indexId: number, rows: readonly ChunkRow[]) {
  const folded = rows.map((row) => ({ ...row, folded: foldText(row.text) }))
  await database.drizzle.execute(sql`
    insert into ${chunkTable(indexId)}
      (id, file_id, ordinal, text, start_char, end_char, tsv, e)
    select id, file_id, ordinal, text, 0, length(text), to_tsvector('simple', folded),
      e::${vectorType(database.kind)}
    from json_to_recordset(${JSON.stringify(folded)}::json)
      as row (id uuid, file_id uuid, ordinal integer, text text, folded text, e text)`)
}

/** Normalised, as an ingest writes them, with fewer digits. */
function vectorText(vector: Float32Array): string {
  const length = Math.hypot(...vector)
  const numbers = vector.map((value) => Math.round((value / length) * vectorScale))
  return `[${Array.from(numbers, (value) => value / vectorScale).join(',')}]`
}

async function sizesOf({ drizzle }: Database, indexId: number): Promise<Filled['bytes']> {
  const name = `chunk_${indexId}`
  const [row] = await drizzle.execute<Record<'table' | 'words' | 'graph', number>>(sql`
    select pg_table_size(${name}::regclass)::float8 as table,
      pg_relation_size(${`${name}_words`}::regclass)::float8 as words,
      coalesce(pg_relation_size(to_regclass(${`${name}_graph`})), 0)::float8 as graph`)
  return { table: row?.table ?? 0, words: row?.words ?? 0, graph: row?.graph ?? 0 }
}
