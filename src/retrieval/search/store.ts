import { sql } from 'drizzle-orm'
import type { Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { collection, embeddingIndex } from '#db/schema/retrieval.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { CollectionIndex } from '#retrieval/collections/collections.ts'
import { findByReferences } from '#retrieval/collections/lookup-store.ts'
import { touchCollections } from '#retrieval/collections/store.ts'
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
    find: (params: FindParams, select: (hits: readonly (readonly Hit[])[]) => FusedHits) =>
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
            const { kind: scoreKind, scored } = select(hits)
            return { kind: scoreKind, scored: await readPassages(transaction, scored) }
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

/** The present indexes of the collections. */
function readIndexes(
  transaction: Transaction,
  { collectionIds }: SearchScope,
  { rightsFirstFilesMax }: SearchTuning,
): Promise<readonly QueriedIndex[]> {
  const ids = uuidArray(collectionIds)
  return transaction.execute<QueriedIndex>(sql`
    select used.id,
      bool_or(to_regclass('chunk_' || used.id || '_graph') is not null) as "hasGraph",
      (select count(*) > ${rightsFirstFilesMax} from (
        select from collection_file where collection_id = any(${ids})
        limit ${rightsFirstFilesMax + 1}) held) as "hasManyFiles"
    from collection cross join lateral (values (index_id), (target_index_id)) used (id)
    where collection.id = any(${ids}) and used.id is not null
    group by used.id order by used.id`)
}

type PassageRow = Omit<SearchResult, 'attributes' | 'chunk' | 'score' | 'match'> &
  SearchResult['chunk'] & { attributes: string }

async function readPassages(
  transaction: Transaction,
  hits: readonly ScoredHit[],
): Promise<readonly SearchResult[]> {
  const passages = new Map<string, Omit<SearchResult, 'score' | 'match'>>()
  for (const [indexId, scored] of Map.groupBy(hits, ({ hit }) => hit.indexId)) {
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
      passages.set(id, { ...row, attributes: JSON.parse(attributes), chunk })
    }
  }
  return hits.flatMap(({ hit, score }) => {
    const passage = passages.get(hit.chunkId)
    return passage === undefined ? [] : [{ ...passage, score, match: matchOf(hit) }]
  })
}

function matchOf({ keywordScore, distance }: ScoredHit['hit']): Match {
  return {
    keyword: keywordScore,
    similarity: distance === null ? null : 1 - distance,
    rerank: null,
  }
}
