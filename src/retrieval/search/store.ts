import { sql } from 'drizzle-orm'
import type { Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { collection, embeddingIndex } from '#db/schema/retrieval.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { CollectionIndex } from '#retrieval/collections/collections.ts'
import { findByReferences } from '#retrieval/collections/lookup-store.ts'
import { touchCollections } from '#retrieval/collections/store.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'
import { partsPerPassage } from '#retrieval/index/parts.ts'
import { chunkTable, type IndexDatabase } from '#retrieval/index/store.ts'
import {
  collectionRank,
  expiry,
  indexJson,
  type QueryHandle,
  uuidArray,
} from '#retrieval/sql-store.ts'
import type { FusedHits, Hit, ScoredHit } from './fuse.ts'
import { findHits, type IndexQuery, type QueriedIndex, type SearchTuning } from './hit-store.ts'
import type { SearchScope } from './scope-store.ts'
import type { Match, SearchResult } from './search.ts'
import type { FoundPassage, Neighbour } from './widen.ts'

/** Enforced by PostgreSQL; the embedded engine has no statement timeout. */
const statementMsMax = 10_000
/** Several statements; a database that hangs ends none of them. */
const searchMsMax = 30_000

/** A collection that the caller sees, and its indexes. */
export type SearchedCollection = {
  readonly id: string
  readonly name: string
  readonly source: CollectionIndex
  readonly target: CollectionIndex | null
  readonly expiresAfterDays: number | null
  readonly isExpired: boolean
}

type FindParams = {
  readonly scope: SearchScope
  readonly queries: readonly IndexQuery[]
  /** The indexes of the plan; a file in another one means that the plan is outdated. */
  readonly indexIds: ReadonlySet<number>
  /** Hits per ranking. */
  readonly hitsMax: number
}

export function searchStore({ drizzle, kind }: IndexDatabase, tuning: SearchTuning) {
  const runQuery = createQueryRunner()
  const runSearch = createQueryRunner(searchMsMax)
  return {
    /**
     * The collection of each reference, in the same order; undefined if the caller does not see it.
     * Throws for an ambiguous name.
     */
    resolve: (
      caller: RequestPrincipal,
      references: readonly string[],
    ): Promise<readonly (SearchedCollection | undefined)[]> =>
      runQuery(async () => {
        const ids = await idsOf(drizzle, caller, references)
        const known = ids.filter((id) => id !== undefined)
        type Row = Omit<SearchedCollection, 'source' | 'target'> & {
          source: string
          target: string
        }
        const rows = await drizzle.execute<Row>(sql`
          select collection.id, collection.name,
            collection.expires_after_days as "expiresAfterDays",
            coalesce(${expiry} <= now(), false) as "isExpired", ${indexJson('source')} as source,
            ${indexJson('target')} as target
          from ${collection}
          join ${embeddingIndex} source on source.id = collection.index_id
          left join ${embeddingIndex} target on target.id = collection.target_index_id
          where collection.id = any(${uuidArray(known)}) and ${collectionRank(caller)} is not null`)
        const byId = new Map(
          rows.map(({ source, target, ...row }) => [
            row.id,
            { ...row, source: JSON.parse(source), target: JSON.parse(target) },
          ]),
        )
        const expiring = rows.filter((row) => row.expiresAfterDays !== null && !row.isExpired)
        if (expiring.length > 0)
          await touchCollections(
            drizzle,
            expiring.map(({ id }) => id),
          )
        return ids.map((id) => byId.get(id ?? ''))
      }),

    /**
     * Reads the passages that `select` chooses from the hits of each query, in one snapshot of the
     * database; undefined if the plan is outdated.
     */
    find: (
      params: FindParams,
      select: (hits: readonly (readonly Hit[])[], partsMax: number) => FusedHits,
    ) =>
      runSearch(() =>
        drizzle.transaction(
          async (transaction) => {
            await applySettings(transaction, tuning)
            const indexes = await readIndexes(transaction, params.scope, tuning)
            if (indexes.some(({ id }) => !params.indexIds.has(id))) return undefined
            const { scope, hitsMax } = params
            const hits = []
            for (const query of params.queries) {
              const found = []
              for (const index of indexes) {
                const hitParams = { transaction, scope, hitsMax, kind, tuning, index, query }
                found.push(await findHits(hitParams))
              }
              hits.push(found.flat())
            }
            const partsByIndex = new Map(indexes.map((one) => [one.id, partsPerPassage(one)]))
            const partsMax = Math.max(1, ...partsByIndex.values())
            const { kind: scoreKind, scored } = select(hits, partsMax)
            const passages = await readPassages(transaction, scored, partsByIndex)
            return { kind: scoreKind, scored: passages }
          },
          { isolationLevel: 'repeatable read', accessMode: 'read only' },
        ),
      ),
  }
}

/** Lower-case ids; names take one more query. */
async function idsOf(
  handle: QueryHandle,
  caller: RequestPrincipal,
  references: readonly string[],
): Promise<readonly (string | undefined)[]> {
  const names = references.filter((reference) => !isUuid(reference))
  const found = await findByReferences(handle, { caller, references: names })
  const byName = new Map(names.map((name, index) => [name, found[index]?.id]))
  return references.map((reference) =>
    isUuid(reference) ? reference.toLowerCase() : byName.get(reference),
  )
}

async function applySettings(
  transaction: Transaction,
  { graphSettings }: SearchTuning,
): Promise<void> {
  // JIT compilation takes longer than any of these statements.
  const settings = { ...graphSettings, jit: 'off', statement_timeout: String(statementMsMax) }
  const calls = Object.entries(settings).map(
    ([name, value]) => sql`set_config(${name}, ${value}, true)`,
  )
  await transaction.execute(sql`select ${sql.join(calls, sql`, `)}`)
}

type ReadIndex = QueriedIndex & Pick<IndexSpec, 'chunkTokensMax' | 'partTokensMax'>

/** The present indexes of the collections. */
function readIndexes(
  transaction: Transaction,
  { collectionIds }: SearchScope,
  { rightsFirstFilesMax }: SearchTuning,
): Promise<readonly ReadIndex[]> {
  const ids = uuidArray(collectionIds)
  return transaction.execute<ReadIndex>(sql`
    select used.id, kind.chunk_tokens_max as "chunkTokensMax",
      kind.part_tokens_max as "partTokensMax",
      bool_or(to_regclass('chunk_' || used.id || '_graph') is not null) as "hasGraph",
      (select count(*) > ${rightsFirstFilesMax} from (
        select from collection_file where collection_id = any(${ids})
        limit ${rightsFirstFilesMax + 1}) held) as "hasManyFiles"
    from collection cross join lateral (values (index_id), (target_index_id)) used (id)
    join ${embeddingIndex} kind on kind.id = used.id
    where collection.id = any(${ids})
    group by used.id, kind.id order by used.id`)
}

type PassageRow = Omit<SearchResult, 'attributes' | 'chunk' | 'score' | 'match'> &
  SearchResult['chunk'] & { attributes: string }

async function readPassages(
  transaction: Transaction,
  hits: readonly ScoredHit[],
  partsByIndex: ReadonlyMap<number, number>,
): Promise<readonly FoundPassage[]> {
  const passages = new Map<string, Omit<FoundPassage, 'score' | 'match'>>()
  for (const [indexId, scored] of Map.groupBy(hits, ({ hit }) => hit.indexId)) {
    const parts = partsByIndex.get(indexId) ?? 1
    const ids = scored.map(({ hit }) => hit.chunkId)
    const neighbours = parts > 1 ? await readNeighbours(transaction, { indexId, ids, parts }) : null
    const wanted = scored.map(({ hit }) => ({ id: hit.chunkId, collection_id: hit.collectionId }))
    const rows = await transaction.execute<PassageRow>(sql`
      select chunk.id, chunk.file_id as "fileId", chunk.text, chunk.ordinal as index, chunk.page,
        chunk.start_char as start, chunk.end_char as "end", node.name as filename,
        (file.attributes || member.attributes)::text as attributes, collection.name as collection,
        collection.id as "collectionId"
      from json_to_recordset(${JSON.stringify(wanted)}::json) as wanted(id uuid, collection_id uuid)
      join ${chunkTable(indexId)} chunk on chunk.id = wanted.id
      join node on node.id = chunk.file_id
      join file on file.node_id = node.id
      join collection on collection.id = wanted.collection_id
      join collection_file member on member.file_id = chunk.file_id
        and member.collection_id = wanted.collection_id`)
    for (const { id, index, page, start, end, attributes, ...row } of rows) {
      const chunk = { id, index, page, start, end }
      const near = neighbours?.get(id) ?? []
      passages.set(id, { ...row, attributes: JSON.parse(attributes), chunk, neighbours: near })
    }
  }
  return hits.flatMap(({ hit, score }) => {
    const passage = passages.get(hit.chunkId)
    return passage === undefined ? [] : [{ ...passage, score, match: matchOf(hit) }]
  })
}

/** By passage: the texts before and after it, so that `parts` texts come together. */
async function readNeighbours(
  transaction: Transaction,
  { indexId, ids, parts }: { indexId: number; ids: readonly string[]; parts: number },
): Promise<ReadonlyMap<string, readonly Neighbour[]>> {
  const table = chunkTable(indexId)
  const before = Math.floor((parts - 1) / 2)
  const rows = await transaction.execute<Neighbour & { id: string }>(sql`
    select chunk.id, near.ordinal as index, near.text, near.page, near.start_char as start,
      near.end_char as "end"
    from ${table} chunk join ${table} near on near.file_id = chunk.file_id
      and near.ordinal between chunk.ordinal - ${before}::integer
        and chunk.ordinal + ${parts - 1 - before}::integer
      and near.id <> chunk.id
    where chunk.id = any(${uuidArray(ids)})
    order by near.ordinal`)
  return Map.groupBy(rows, ({ id }) => id)
}

function matchOf({ keywordScore, distance }: ScoredHit['hit']): Match {
  return {
    keyword: keywordScore,
    similarity: distance === null ? null : 1 - distance,
    rerank: null,
  }
}
