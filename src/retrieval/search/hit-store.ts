import { type SQL, sql } from 'drizzle-orm'
import type { Transaction } from '#db/client.ts'
import { chunkTable, type IndexDatabase, vectorText, vectorType } from '#retrieval/index/store.ts'
import type { Hit } from './fuse.ts'
import { type KeywordTier, keywordTiers } from './keywords.ts'
import {
  emptyKeywordRanking,
  emptyVectorRanking,
  type Ranking,
  rankAllByGraph,
  rankAllByKeywords,
  rankByComparison,
  rankByGraph,
  rankByKeywords,
} from './ranking-store.ts'
import { type SearchScope, visibleFileTables } from './scope-store.ts'

export type SearchTuning = {
  /** Up to so many allowed passages are compared exactly, without the graph. */
  readonly exactChunksMax: number
  /** Whether to compare exactly after all where the graph returns too few hits. */
  readonly exactWhenShort: boolean
  /** Collections with more files rank passages first and check rights afterwards. */
  readonly rightsFirstFilesMax: number
  /** Passages ranked per wanted hit before rights are checked. */
  readonly candidatesPerHit: number
  /** With the defaults of pgvector a filtered graph scan misses most results. */
  readonly graphSettings: Readonly<Record<string, string>>
}

export const searchTuning: SearchTuning = {
  exactChunksMax: 5_000,
  exactWhenShort: true,
  rightsFirstFilesMax: 2_000,
  candidatesPerHit: 8,
  graphSettings: {
    'hnsw.iterative_scan': 'relaxed_order',
    'hnsw.ef_search': '100',
    'hnsw.max_scan_tuples': '40000',
    'hnsw.scan_mem_multiplier': '2',
  },
}

export type IndexQuery = {
  /** Null: no full text search. */
  readonly keywords: string | null
  /** By index id; an index without one gets no vector search. */
  readonly vectors: ReadonlyMap<number, Float32Array>
}

export type QueriedIndex = {
  readonly id: number
  readonly hasGraph: boolean
  /** Whether checking the rights of all files costs more than the search. */
  readonly hasManyFiles: boolean
}

type HitParams = {
  readonly transaction: Transaction
  readonly scope: SearchScope
  /** Hits per ranking. */
  readonly hitsMax: number
  readonly kind: IndexDatabase['kind']
  readonly tuning: SearchTuning
  readonly index: QueriedIndex
  readonly query: IndexQuery
}

/** The hits of one query in one index. */
export async function findHits(params: HitParams): Promise<readonly Hit[]> {
  const hits = params.index.hasManyFiles ? await findAmongCandidates(params) : undefined
  return hits ?? (await findAmongVisible(params))
}

/** Checks the rights of all files first. */
async function findAmongVisible(params: HitParams): Promise<readonly Hit[]> {
  const { tuning, index, query, hitsMax } = params
  const byGraph = index.hasGraph && query.vectors.has(index.id)
  const { hits, chunks } = await selectVisibleHits(params, { byGraph })
  if (!byGraph || !tuning.exactWhenShort || chunks <= tuning.exactChunksMax) return hits
  const nearest = hits.filter(({ distance }) => distance !== null).length
  const isShort = nearest < Math.min(hitsMax, chunks)
  return isShort ? (await selectVisibleHits(params, { byGraph: false })).hits : hits
}

/** The id is null in the single row of an empty result. */
type HitRow = Omit<Hit, 'chunkId' | 'indexId'> & { chunkId: string | null }

/** One statement, since the check of rights costs more than most searches. */
async function selectVisibleHits(
  params: HitParams,
  { byGraph }: { byGraph: boolean },
): Promise<{ hits: readonly Hit[]; chunks: number }> {
  const { transaction, scope, hitsMax, index, query, tuning } = params
  const vector = vectorOf(params)
  const ranking = { table: chunkTable(index.id), hitsMax }
  const exactChunksMax = byGraph ? tuning.exactChunksMax : null
  const nearest =
    vector === null ? emptyVectorRanking : rankByVector(vector, ranking, exactChunksMax)
  const matching =
    query.keywords === null ? emptyKeywordRanking : rankByKeywords(query.keywords, ranking)
  const rows = await transaction.execute<HitRow & { chunks: number }>(sql`
    with ${visibleFileTables(scope, 'all files')},
    ${allowedTable(index)},
    counted as materialized (select coalesce(sum(chunks), 0)::integer as chunks from allowed),
    nearest as materialized (${nearest}),
    matching as materialized (${matching}),
    ${hitTable}
    select counted.chunks, hit.* from counted left join hit on true ${hitOrder}`)
  return { hits: rows.flatMap((row) => hitsOf(row, index.id)), chunks: rows[0]?.chunks ?? 0 }
}

/** Uses the graph above `exactChunksMax` allowed passages; null: never. */
function rankByVector(vector: SQL, ranking: Ranking, exactChunksMax: number | null): SQL {
  if (exactChunksMax === null) return rankByComparison(vector, ranking, sql`true`)
  // Evaluated before either branch, so that only one of them runs.
  const isLarge = sql`(select chunks from counted) > ${exactChunksMax}`
  return sql`
    (${rankByGraph(vector, ranking, isLarge)})
    union all (${rankByComparison(vector, ranking, sql`not (${isLarge})`)})`
}

/**
 * Ranks the whole index and checks the rights of the best passages only. Undefined where that yields
 * too few hits.
 */
async function findAmongCandidates(params: HitParams): Promise<readonly Hit[] | undefined> {
  const { keywords, vectors } = params.query
  if (vectors.has(params.index.id) && !params.index.hasGraph) return undefined
  for (const tier of keywords === null ? [null] : keywordTiers(keywords)) {
    const { hits, isEnough, isRare } = await selectCandidateHits(params, tier)
    if (isEnough) return hits
    // A wider tier would rank even more passages that this caller may not see.
    if (isRare) return undefined
  }
  return undefined
}

type CandidateRow = HitRow & { nearest_count: number; matched: number; matching_count: number }

async function selectCandidateHits(
  params: HitParams,
  tier: KeywordTier | null,
): Promise<{ hits: readonly Hit[]; isEnough: boolean; isRare: boolean }> {
  const { transaction, scope, hitsMax, index, query, tuning } = params
  const { keywords } = query
  const vector = vectorOf(params)
  const ranking = { table: chunkTable(index.id), hitsMax: hitsMax * tuning.candidatesPerHit }
  const near = vector === null ? emptyVectorRanking : rankAllByGraph(vector, ranking)
  const matched =
    tier === null || keywords === null
      ? emptyKeywordRanking
      : rankAllByKeywords(keywords, ranking, tier)
  const rows = await transaction.execute<CandidateRow>(sql`
    with near as materialized (${near}),
    matched as materialized (${matched}),
    candidate as materialized (select file_id from near union select file_id from matched),
    ${visibleFileTables(scope, 'candidates')},
    ${allowedTable(index)},
    nearest as materialized (
      select near.id, file_id, allowed.collection_id, near.distance
      from near join allowed using (file_id)
      order by near.distance limit ${hitsMax}),
    matching as materialized (
      select matched.id, file_id, allowed.collection_id, matched.keyword_score
      from matched join allowed using (file_id)
      order by matched.keyword_score desc, matched.id limit ${hitsMax}),
    ${hitTable},
    counted as (
      select (select count(*)::integer from nearest) as nearest_count,
        (select count(*)::integer from matched) as matched,
        (select count(*)::integer from matching) as matching_count)
    select counted.*, hit.* from counted left join hit on true ${hitOrder}`)
  const [counts = { nearest_count: 0, matched: 0, matching_count: 0 }] = rows
  const isVectorShort = vector !== null && counts.nearest_count < hitsMax
  const isExhaustive = tier === null || (tier === 'any' && counts.matched < ranking.hitsMax)
  return {
    hits: rows.flatMap((row) => hitsOf(row, index.id)),
    isEnough: !isVectorShort && (isExhaustive || counts.matching_count === hitsMax),
    isRare: isVectorShort || counts.matching_count * tuning.candidatesPerHit < counts.matched,
  }
}

function vectorOf({ query, index, kind }: HitParams): SQL | null {
  const vector = query.vectors.get(index.id)
  return vector === undefined ? null : sql`${vectorText(vector)}::${vectorType(kind)}`
}

function allowedTable({ id }: QueriedIndex): SQL {
  return sql`
    allowed as materialized (
      select file_id, collection_id, chunks from member where index_id = ${id})`
}

const hitTable = sql`
  hit as (
    select id as "chunkId", file_id as "fileId", collection_id as "collectionId",
      nearest.distance, matching.keyword_score as "keywordScore"
    from nearest full join matching using (id, file_id, collection_id))`

const hitOrder = sql`order by hit.distance + 0, hit."keywordScore" desc, hit."chunkId"`

function hitsOf(
  { chunkId, fileId, collectionId, distance, keywordScore }: HitRow,
  indexId: number,
) {
  if (chunkId === null) return []
  return [{ chunkId, indexId, fileId, collectionId, distance, keywordScore }]
}
