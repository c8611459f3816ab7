import { type SQL, sql } from 'drizzle-orm'
import type { Transaction } from '#jobs/jobs.ts'
import { chunkTable, type IndexDatabase, vectorText, vectorType } from '#retrieval/index/store.ts'
import type { Hit } from '#retrieval/search/fuse.ts'
import { type Scope, withMembers } from '#retrieval/search/scope/store.ts'

export type SearchTuning = {
  /** Among at most so many passages all are compared, and none is lost. */
  readonly exactChunksMax: number
  /** Whether all are compared, too, where the graph gave fewer than were asked for. */
  readonly exactWhenShort: boolean
  /** Without these, a search of a graph through a filter gives a part of what is there. */
  readonly graphSettings: Readonly<Record<string, string>>
}

export const searchTuning: SearchTuning = {
  exactChunksMax: 5_000,
  exactWhenShort: true,
  graphSettings: {
    'hnsw.iterative_scan': 'relaxed_order',
    'hnsw.ef_search': '100',
    'hnsw.max_scan_tuples': '40000',
    'hnsw.scan_mem_multiplier': '2',
  },
}

export type Question = {
  /** For full text; null: not asked by words. */
  readonly words: string | null
  /** By index; what has none is not asked by its vectors. */
  readonly vectors: ReadonlyMap<number, Float32Array>
}

export type AskedIndex = { readonly id: number; readonly hasGraph: boolean }

type Asking = {
  readonly transaction: Transaction
  readonly scope: Scope
  /** How many each way of searching gives. */
  readonly hitsMax: number
  readonly kind: IndexDatabase['kind']
  readonly tuning: SearchTuning
  readonly index: AskedIndex
  readonly question: Question
}

/** What one index has for one question. */
export async function askIndex(asking: Asking): Promise<readonly Hit[]> {
  const { tuning, index, question, hitsMax } = asking
  const byGraph = index.hasGraph && question.vectors.has(index.id)
  const { hits, chunks } = await readHits(asking, { byGraph })
  if (!byGraph || !tuning.exactWhenShort || chunks <= tuning.exactChunksMax) return hits
  const nearest = hits.filter(({ distance }) => distance !== null).length
  const isShort = nearest < Math.min(hitsMax, chunks)
  return isShort ? (await readHits(asking, { byGraph: false })).hits : hits
}

type HitRow = {
  /** That may be found. */
  chunks: number
  /** Null in the one row that is there where there are no hits. */
  id: string | null
  file_id: string
  collection_id: string
  distance: number | null
  word_score: number | null
}

/** All in one statement, since finding out what may be found costs more than most searches of it. */
async function readHits(
  asking: Asking,
  { byGraph }: { byGraph: boolean },
): Promise<{ hits: readonly Hit[]; chunks: number }> {
  const { transaction, scope, hitsMax, kind, index, question, tuning } = asking
  const vector = question.vectors.get(index.id)
  const leg = { table: chunkTable(index.id), hitsMax }
  const nearest =
    vector === undefined
      ? sql`select ${nowhere}, null::float8 as distance where false`
      : nearestTo(sql`${vectorText(vector)}::${vectorType(kind)}`, {
          ...leg,
          exactChunksMax: byGraph ? tuning.exactChunksMax : null,
        })
  const matching =
    question.words === null
      ? sql`select ${nowhere}, null::float8 as word_score where false`
      : matchingWords(question.words, leg)
  const rows = await transaction.execute<HitRow>(sql`
    ${withMembers(scope)},
    allowed as materialized (
      select file_id, collection_id, chunks from member where index_id = ${index.id}),
    counted as materialized (select coalesce(sum(chunks), 0)::integer as chunks from allowed),
    nearest as materialized (${nearest}),
    matching as materialized (${matching}),
    hit as (
      select id, file_id, collection_id, nearest.distance, matching.word_score
      from nearest full join matching using (id, file_id, collection_id))
    select counted.chunks, hit.* from counted left join hit on true
    order by hit.distance + 0, hit.word_score desc, hit.id`)
  return { hits: rows.flatMap((row) => hitOf(row, index.id)), chunks: rows[0]?.chunks ?? 0 }
}

function hitOf({ id, ...row }: HitRow, indexId: number): Hit[] {
  if (id === null) return []
  const { collection_id: collectionId, file_id: fileId, distance, word_score: wordScore } = row
  return [{ chunkId: id, indexId, collectionId, fileId, distance, wordScore }]
}

/** What the table of each way of searching begins with, where it has nothing. */
const nowhere = sql`null::uuid as id, null::uuid as file_id, null::uuid as collection_id`

type Leg = { table: SQL; hitsMax: number }

/** By the graph where there are more passages than are compared with one another, if there is one. */
function nearestTo(vector: SQL, leg: Leg & { exactChunksMax: number | null }): SQL {
  const { exactChunksMax } = leg
  if (exactChunksMax === null) return comparedTo(vector, leg, sql`true`)
  // Known before either of the two begins, so that only one of them does.
  const isMany = sql`(select chunks from counted) > ${exactChunksMax}`
  return sql`
    (${foundByGraph(vector, leg, isMany)}) union all (${comparedTo(vector, leg, sql`not (${isMany})`)})`
}

function comparedTo(vector: SQL, { table, hitsMax }: Leg, condition: SQL): SQL {
  // The sum keeps the graph out of it.
  return sql`
    select chunk.id, file_id, allowed.collection_id, chunk.e <=> ${vector} as distance
    from allowed join ${table} chunk using (file_id)
    where ${condition}
    order by (chunk.e <=> ${vector}) + 0 limit ${hitsMax}`
}

function foundByGraph(vector: SQL, { table, hitsMax }: Leg, condition: SQL): SQL {
  // "is true" keeps it a filter of the scan of the graph: as a join it would begin with the files.
  return sql`
    select near.id, file_id, allowed.collection_id, near.distance
    from (
      select chunk.id, chunk.file_id, chunk.e <=> ${vector} as distance
      from ${table} chunk
      where (chunk.file_id in (select allowed.file_id from allowed)) is true and ${condition}
      order by chunk.e <=> ${vector} limit ${hitsMax}) near
    join allowed using (file_id)`
}

/** Those with any of the words; those with all of them come first. */
function matchingWords(words: string, { table, hitsMax }: Leg): SQL {
  const all = sql`plainto_tsquery('simple', ${words})`
  return sql`
    select chunk.id, file_id, allowed.collection_id,
      (case when chunk.tsv @@ ${all} then 0.5 else 0 end
        + ts_rank(chunk.tsv, wanted.some, 33) / 2)::float8 as word_score
    from (select replace(${all}::text, ' & ', ' | ')::tsquery as some) wanted
    join ${table} chunk on chunk.tsv @@ wanted.some
    join allowed using (file_id)
    order by word_score desc, chunk.id limit ${hitsMax}`
}
