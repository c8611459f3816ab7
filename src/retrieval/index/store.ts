import { type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { embeddingIndex, fileIndex } from '#db/schema/retrieval.ts'
import { assert } from '#lib/assert.ts'
import { instant, uuidArray } from '#retrieval/sql-store.ts'
import type { Chunk, ChunkIndex, EmbeddedChunk, IndexSpec } from './chunk.ts'
import { indexedWords } from './keyword-text.ts'

export type IndexDatabase = Pick<Database, 'drizzle' | 'kind'>
type Kind = Database['kind']

/** The limit of pgvector. */
export const dimsMax = 16_000
/** The limit of its graphs over half-precision vectors. */
export const graphDimsMax = 4_000
/** Longer statements save no time; the embedded engine blocks readers meanwhile and keeps the memory. */
const insertCharsMax = 256 * 1024
/** Significant digits of single precision. */
const vectorDigits = 7

export function chunkTable(indexId: number): SQL {
  return sql.raw(`chunk_${numberOf(indexId)}`)
}

function graphName(indexId: number): string {
  return `chunk_${numberOf(indexId)}_graph`
}

/** Half precision is half the size; in the embedded engine, scans of it take three times as long. */
export function vectorType(kind: Kind): SQL {
  return sql.raw(kind === 'pglite' ? 'vector' : 'halfvec')
}

/** Normalized to length 1: cosine distance ignores the length, and half precision cannot hold large values. */
export function vectorText(vector: Float32Array): string {
  const length = Math.hypot(...vector)
  return `[${Array.from(vector, (value) => Number((value / length).toPrecision(vectorDigits))).join(',')}]`
}

/** Indexes and their tables of passages. */
export function chunkStore({ drizzle, kind }: IndexDatabase, { now }: { now: () => Date }) {
  const runQuery = createQueryRunner()
  return {
    findActive: (spec: IndexSpec) => runQuery(() => findActive(drizzle, spec)),

    provide: (spec: IndexSpec): Promise<ChunkIndex> =>
      runQuery(() =>
        drizzle.transaction(async (transaction) => {
          const lock = `chunk index ${JSON.stringify(spec)}`
          await transaction.execute(sql`select pg_advisory_xact_lock(hashtextextended(${lock}, 0))`)
          const known = await findActive(transaction, spec)
          return known ?? addIndex(transaction, { spec, state: 'active', kind, at: now() })
        }),
      ),

    create(spec: IndexSpec, transaction?: Transaction): Promise<ChunkIndex> {
      const add = (within: Transaction) =>
        addIndex(within, { spec, state: 'building', kind, at: now() })
      return transaction === undefined ? drizzle.transaction(add) : add(transaction)
    },

    async find(id: number): Promise<ChunkIndex | undefined> {
      const [row] = await drizzle.execute<ChunkIndex>(sql`
        select ${indexColumns} from ${embeddingIndex} where id = ${id}`)
      return row
    },

    /** The text hashes of the stored passages of a file, by ordinal. */
    async textHashes(id: number, fileId: string): Promise<ReadonlyMap<number, string>> {
      const rows = await drizzle.execute<{ ordinal: number; hash: string }>(sql`
        select ordinal, md5(text) as hash from ${chunkTable(id)} where file_id = ${fileId}::uuid`)
      return new Map(rows.map(({ ordinal, hash }) => [ordinal, hash]))
    },

    async drop(id: number): Promise<void> {
      await drizzle.transaction(async (transaction) => {
        await transaction.execute(sql`delete from ${embeddingIndex} where id = ${id}`)
        await transaction.execute(sql`drop table if exists ${chunkTable(id)}`)
      })
    },

    /** HNSW graphs make searches of large indexes fast but approximate. */
    async hasMoreThan(id: number, count: number): Promise<boolean> {
      const rows = await drizzle.execute(
        sql`select 1 from ${chunkTable(id)} offset ${count} limit 1`,
      )
      return rows.length > 0
    },

    /** Builds the graph concurrently with writes; replaces the remains of an interrupted build. */
    async buildGraph(id: number): Promise<void> {
      const name = sql.raw(graphName(id))
      const [known] = await drizzle.execute<{ is_valid: boolean }>(sql`
        select indisvalid as is_valid from pg_index
        where indexrelid = to_regclass(${graphName(id)})`)
      if (known?.is_valid) return
      await drizzle.execute(sql`drop index concurrently if exists ${name}`)
      await drizzle.execute(sql`
        create index concurrently ${name} on ${chunkTable(id)} using hnsw (e halfvec_cosine_ops)`)
    },
  }
}

/**
 * Replaces the passages of a file, except others below the ordinal `keepBelow`; deletes all of them if
 * no collection needs the file in this index.
 */
export async function replaceChunks(
  transaction: Transaction,
  params: {
    index: ChunkIndex
    fileId: string
    chunks: readonly EmbeddedChunk[]
    keepBelow: number
    kind: Kind
  },
): Promise<void> {
  const { index, fileId, chunks, keepBelow, kind } = params
  // Serializes concurrent writes of the same file.
  const [needed] = await transaction.execute(sql`
    select 1 from ${fileIndex}
    where file_id = ${fileId}::uuid and index_id = ${index.id} for update`)
  if (needed === undefined || keepBelow === 0) {
    await deleteChunks(transaction, index.id, [fileId])
  } else {
    const ordinals = `{${chunks.map(({ ordinal }) => ordinal).join(',')}}`
    await transaction.execute(sql`
      delete from ${chunkTable(index.id)} where file_id = ${fileId}::uuid
        and (ordinal >= ${keepBelow} or ordinal = any(${ordinals}::integer[]))`)
  }
  if (needed === undefined) return
  for (const rowsJson of insertBatches(chunks)) {
    await transaction.execute(sql`
      insert into ${chunkTable(index.id)}
        (id, file_id, ordinal, text, page, start_char, end_char, tsv, e)
      select row.id, ${fileId}::uuid, row.ordinal, row.text, row.page, row.start_char,
        row.end_char, to_tsvector('simple', row.folded), row.e::${vectorType(kind)}
      from json_to_recordset(${rowsJson}::json) as row(id uuid, ordinal integer, text text,
        page integer, start_char integer, end_char integer, folded text, e text)`)
  }
}

export async function deleteChunks(
  transaction: Transaction,
  indexId: number,
  fileIds: readonly string[],
): Promise<void> {
  await transaction.execute(sql`
    delete from ${chunkTable(indexId)} where file_id = any(${uuidArray(fileIds)})`)
}

/** The rows of each statement as JSON. */
function* insertBatches(chunks: readonly EmbeddedChunk[]): Generator<string> {
  let rows: string[] = []
  let chars = 0
  for (const chunk of chunks) {
    const row = rowJson(chunk)
    if (rows.length > 0 && chars + row.length > insertCharsMax) {
      yield `[${rows.join(',')}]`
      rows = []
      chars = 0
    }
    rows.push(row)
    chars += row.length
  }
  if (rows.length > 0) yield `[${rows.join(',')}]`
}

function rowJson(chunk: EmbeddedChunk): string {
  const text = storedText(chunk)
  return JSON.stringify({
    id: Bun.randomUUIDv7(),
    ordinal: chunk.ordinal,
    text,
    page: chunk.page,
    start_char: chunk.start,
    end_char: chunk.end,
    folded: indexedWords(text),
    e: vectorText(chunk.vector),
  })
}

/** PostgreSQL cannot store NUL; a replacement of the same length keeps the positions. */
function storedText({ text }: Chunk): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}

/** Identifies the text of a passage, as the database computes it. */
export function textHash(chunk: Chunk): string {
  return new Bun.CryptoHasher('md5').update(storedText(chunk)).digest('hex')
}

/** The columns of a `ChunkIndex`. */
const indexColumns = sql`id, model, dims, chunk_tokens_max as "chunkTokensMax",
  chunk_overlap_tokens as "chunkOverlapTokens",
  part_tokens_max as "partTokensMax", state`

async function findActive(
  handle: Pick<Transaction, 'execute'>,
  spec: Omit<IndexSpec, 'dims'> & { dims?: number },
): Promise<ChunkIndex | undefined> {
  const hasDims = spec.dims === undefined ? sql`` : sql`and dims = ${spec.dims}`
  const [row] = await handle.execute<ChunkIndex>(sql`
    select ${indexColumns} from ${embeddingIndex}
    where state = 'active' and model = ${spec.model} ${hasDims}
      and chunk_tokens_max = ${spec.chunkTokensMax}
      and chunk_overlap_tokens = ${spec.chunkOverlapTokens}
      and part_tokens_max is not distinct from ${spec.partTokensMax}::integer
    order by id desc limit 1`)
  return row
}

async function addIndex(
  transaction: Transaction,
  { spec, state, kind, at }: { spec: IndexSpec; state: ChunkIndex['state']; kind: Kind; at: Date },
): Promise<ChunkIndex> {
  const [row] = await transaction.execute<ChunkIndex>(sql`
    insert into ${embeddingIndex}
      (model, dims, chunk_tokens_max, chunk_overlap_tokens, part_tokens_max, state, created_at)
    values (${spec.model}, ${spec.dims}, ${spec.chunkTokensMax}, ${spec.chunkOverlapTokens},
      ${spec.partTokensMax}::integer, ${state}, ${instant(at)})
    returning ${indexColumns}`)
  assert(row !== undefined, 'the insert returns a row')
  const table = chunkTable(row.id)
  const fileKey = sql.raw(`chunk_${row.id}_file`)
  const wordKey = sql.raw(`chunk_${row.id}_words`)
  const dims = sql.raw(String(numberOf(row.dims)))
  await transaction.execute(sql`
    create table ${table} (
      id uuid primary key,
      file_id uuid not null references node (id) on delete cascade,
      ordinal integer not null,
      text text not null,
      page integer,
      start_char integer not null,
      end_char integer not null,
      tsv tsvector not null,
      e ${vectorType(kind)}(${dims}) not null
    )`)
  await storeInline(transaction, table, kind)
  await transaction.execute(sql`create index ${fileKey} on ${table} (file_id, ordinal)`)
  await transaction.execute(sql`create index ${wordKey} on ${table} using gin (tsv)`)
  return row
}

/**
 * Keeps vectors and keywords of long rows in the main table; out of line they would cost scans eight
 * times as many page reads. The embedded engine scans all vectors, so its keywords stay out of line.
 */
async function storeInline(transaction: Transaction, table: SQL, kind: Kind): Promise<void> {
  await transaction.execute(sql`alter table ${table} alter column e set storage main`)
  if (kind === 'pglite') return
  await transaction.execute(sql`alter table ${table} alter column tsv set storage main`)
}

/** Guards table names against injection. */
function numberOf(value: number): number {
  assert(Number.isSafeInteger(value) && value > 0, 'an index id is a positive integer')
  return value
}
