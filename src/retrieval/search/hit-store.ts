import { type SQL, sql } from 'drizzle-orm'
import type { Transaction } from '#jobs/jobs.ts'
import { chunkTable, type IndexDatabase, vectorText, vectorType } from '#retrieval/index/store.ts'
import type { Hit } from '#retrieval/search/fuse.ts'
import {
  comparedTo,
  foundByGraph,
  type Leg,
  matchingOfAll,
  matchingWords,
  nearestOfAll,
  noneMatching,
  noneNearest,
} from './candidate-store.ts'
import { type WordsTier, wordsTiers } from './keyword-tier.ts'
import { memberTables, type Scope } from './scope-store.ts'

export type SearchTuning = {
  /** Among at most so many passages all are compared, and none is lost. */
  readonly exactChunksMax: number
  /** Whether all are compared, too, where the graph gave fewer than were asked for. */
  readonly exactWhenShort: boolean
  /** Of at most so many files, what may be found is found out before anything is looked for. */
  readonly rightsFirstFilesMax: number
  /** Of more, so many passages are looked for, for each one that is wanted, and then their rights. */
  readonly candidatesPerHit: number
  /** Without these, a search of a graph through a filter gives a part of what is there. */
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

export type Question = {
  /** For full text; null: not asked by words. */
  readonly words: string | null
  /** By index; what has none is not asked by its vectors. */
  readonly vectors: ReadonlyMap<number, Float32Array>
}

export type AskedIndex = {
  readonly id: number
  readonly hasGraph: boolean
  /** Whether finding out what may be found in it costs more than looking for it. */
  readonly hasManyFiles: boolean
}

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
  const found = asking.index.hasManyFiles ? await readCandidates(asking) : undefined
  return found ?? (await readAllowed(asking))
}

/** Of all that may be found. */
async function readAllowed(asking: Asking): Promise<readonly Hit[]> {
  const { tuning, index, question, hitsMax } = asking
  const byGraph = index.hasGraph && question.vectors.has(index.id)
  const { hits, chunks } = await readHits(asking, { byGraph })
  if (!byGraph || !tuning.exactWhenShort || chunks <= tuning.exactChunksMax) return hits
  const nearest = hits.filter(({ distance }) => distance !== null).length
  const isShort = nearest < Math.min(hitsMax, chunks)
  return isShort ? (await readHits(asking, { byGraph: false })).hits : hits
}

type HitRow = {
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
  const { transaction, scope, hitsMax, index, question, tuning } = asking
  const vector = vectorOf(asking)
  const leg = { table: chunkTable(index.id), hitsMax }
  const nearest =
    vector === null
      ? noneNearest
      : nearestTo(vector, { ...leg, exactChunksMax: byGraph ? tuning.exactChunksMax : null })
  const matching = question.words === null ? noneMatching : matchingWords(question.words, leg)
  const rows = await transaction.execute<HitRow & { chunks: number }>(sql`
    with ${memberTables(scope, 'all files')},
    ${allowedIn(index)},
    counted as materialized (select coalesce(sum(chunks), 0)::integer as chunks from allowed),
    nearest as materialized (${nearest}),
    matching as materialized (${matching}),
    ${hit}
    select counted.chunks, hit.* from counted left join hit on true ${inOrder}`)
  return { hits: rows.flatMap((row) => hitOf(row, index.id)), chunks: rows[0]?.chunks ?? 0 }
}

/** By the graph where there are more passages than are compared with one another, if there is one. */
function nearestTo(vector: SQL, leg: Leg & { exactChunksMax: number | null }): SQL {
  const { exactChunksMax } = leg
  if (exactChunksMax === null) return comparedTo(vector, leg, sql`true`)
  // Known before either of the two begins, so that only one of them does.
  const isMany = sql`(select chunks from counted) > ${exactChunksMax}`
  return sql`
    (${foundByGraph(vector, leg, isMany)}) union all (${comparedTo(vector, leg, sql`not (${isMany})`)})`
}

/**
 * What is nearest in the whole index and has the most of the words, as far as it may be found: few of
 * many files need to be asked about. Undefined where that gives fewer than are wanted.
 */
async function readCandidates(asking: Asking): Promise<readonly Hit[] | undefined> {
  const { words, vectors } = asking.question
  if (vectors.has(asking.index.id) && !asking.index.hasGraph) return undefined
  for (const tier of words === null ? [null] : wordsTiers(words)) {
    const { hits, isEnough, isRare } = await readTier(asking, tier)
    if (isEnough) return hits
    // The next tier would look through even more of what is not for this caller.
    if (isRare) return undefined
  }
  return undefined
}

type TierRow = HitRow & { nearest_count: number; matched: number; matching_count: number }

type TierAnswer = {
  readonly hits: readonly Hit[]
  readonly isEnough: boolean
  /** Whether few of the candidates may be found. */
  readonly isRare: boolean
}

async function readTier(asking: Asking, tier: WordsTier | null): Promise<TierAnswer> {
  const { transaction, scope, hitsMax, index, question, tuning } = asking
  const { words } = question
  const vector = vectorOf(asking)
  const leg = { table: chunkTable(index.id), hitsMax: hitsMax * tuning.candidatesPerHit }
  const rows = await transaction.execute<TierRow>(sql`
    with near as materialized (${vector === null ? noneNearest : nearestOfAll(vector, leg)}),
    matched as materialized (
      ${tier === null || words === null ? noneMatching : matchingOfAll(words, leg, tier)}),
    candidate as materialized (select file_id from near union select file_id from matched),
    ${memberTables(scope, 'candidates')},
    ${allowedIn(index)},
    nearest as materialized (
      select near.id, file_id, allowed.collection_id, near.distance
      from near join allowed using (file_id)
      order by near.distance limit ${hitsMax}),
    matching as materialized (
      select matched.id, file_id, allowed.collection_id, matched.word_score
      from matched join allowed using (file_id)
      order by matched.word_score desc, matched.id limit ${hitsMax}),
    ${hit},
    counted as (
      select (select count(*)::integer from nearest) as nearest_count,
        (select count(*)::integer from matched) as matched,
        (select count(*)::integer from matching) as matching_count)
    select counted.*, hit.* from counted left join hit on true ${inOrder}`)
  const [{ nearest_count: nearest, matched, matching_count: matching } = noCounts] = rows
  const isNearShort = vector !== null && nearest < hitsMax
  const isAll = tier === null || (tier === 'any' && matched < leg.hitsMax)
  return {
    hits: rows.flatMap((row) => hitOf(row, index.id)),
    isEnough: !isNearShort && (isAll || matching === hitsMax),
    isRare: isNearShort || matching * tuning.candidatesPerHit < matched,
  }
}

const noCounts = { nearest_count: 0, matched: 0, matching_count: 0 }

function vectorOf({ question, index, kind }: Asking): SQL | null {
  const vector = question.vectors.get(index.id)
  return vector === undefined ? null : sql`${vectorText(vector)}::${vectorType(kind)}`
}

function allowedIn({ id }: AskedIndex): SQL {
  return sql`
    allowed as materialized (
      select file_id, collection_id, chunks from member where index_id = ${id})`
}

/** Of what was found by either of two ways, or by both. */
const hit = sql`
  hit as (
    select id, file_id, collection_id, nearest.distance, matching.word_score
    from nearest full join matching using (id, file_id, collection_id))`

const inOrder = sql`order by hit.distance + 0, hit.word_score desc, hit.id`

function hitOf({ id, ...row }: HitRow, indexId: number): Hit[] {
  if (id === null) return []
  const { collection_id: collectionId, file_id: fileId, distance, word_score: wordScore } = row
  return [{ chunkId: id, indexId, collectionId, fileId, distance, wordScore }]
}
