import { sql } from 'drizzle-orm'
import { createQueryRunner } from '#db/query-runner.ts'
import { collection, embeddingIndex } from '#db/schema/retrieval.ts'
import type { Attributes } from '#files/files.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import { chunkTable, type IndexDatabase } from '#retrieval/index/store.ts'
import { collectionRank, textArray, uuidArray } from '#retrieval/sql-store.ts'
import type { Hit, ScoredHit } from './fuse.ts'
import { findHits, type IndexQuery, type QueriedIndex, type SearchTuning } from './hit-store.ts'
import type { SearchScope } from './scope-store.ts'

/** Enforced by PostgreSQL; the embedded engine has no statement timeout. */
const statementMsMax = 10_000

/** A collection that the caller sees, and its indexes. */
export type SearchedCollection = {
  readonly id: string
  readonly name: string
  readonly source: SearchedIndex
  readonly target: SearchedIndex | null
}

export type SearchedIndex = { readonly id: number; readonly model: string; readonly dims: number }

export type StoredPassage = {
  readonly chunkId: string
  readonly fileId: string
  readonly filename: string
  readonly attributes: Attributes
  readonly text: string
  readonly ordinal: number
  readonly page: number | null
  readonly start: number
  readonly end: number
}

type FindParams = {
  readonly scope: SearchScope
  readonly queries: readonly IndexQuery[]
  /** The indexes of the plan; a file in another one means that the plan is outdated. */
  readonly indexIds: ReadonlySet<number>
  /** Hits per ranking. */
  readonly hitsMax: number
  /** Selects from the hits of each query those whose text is read. */
  select(hits: readonly (readonly Hit[])[]): readonly ScoredHit[]
}

export function searchStore({ drizzle, kind }: IndexDatabase, tuning: SearchTuning) {
  const runQuery = createQueryRunner()
  return {
    /** The collections of these names or ids that the caller sees. */
    resolve: (
      caller: RequestPrincipal,
      namesOrIds: readonly string[],
    ): Promise<SearchedCollection[]> =>
      runQuery(async () => {
        const rows = await drizzle.execute<CollectionRow>(sql`
          select collection.id, collection.name,
            source.id as source_id, source.model as source_model, source.dims as source_dims,
            target.id as target_id, target.model as target_model, target.dims as target_dims
          from ${collection}
          join ${embeddingIndex} source on source.id = collection.index_id
          left join ${embeddingIndex} target on target.id = collection.target_index_id
          where (collection.name = any(${textArray(namesOrIds)})
              or collection.id = any(${uuidArray(namesOrIds.filter(isUuid))}))
            and ${collectionRank(caller)} is not null`)
        return rows.map(collectionOf)
      }),

    /** Reads one snapshot of the database; undefined if the plan is outdated. */
    find: (params: FindParams) =>
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
          const selected = params.select(hits)
          return { selected, passages: await readPassages(transaction, selected) }
        },
        { isolationLevel: 'repeatable read', accessMode: 'read only' },
      ),
  }
}

type CollectionRow = {
  id: string
  name: string
  source_id: number
  source_model: string
  source_dims: number
  target_id: number | null
  target_model: string | null
  target_dims: number | null
}

function collectionOf(row: CollectionRow): SearchedCollection {
  const { target_id: id, target_model: model, target_dims: dims } = row
  const hasTarget = id !== null && model !== null && dims !== null
  return {
    id: row.id,
    name: row.name,
    source: { id: row.source_id, model: row.source_model, dims: row.source_dims },
    target: hasTarget ? { id, model, dims } : null,
  }
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

type IndexRow = { id: number; has_graph: boolean; has_many_files: boolean }

/** The present indexes of the collections. */
async function readIndexes(
  transaction: Transaction,
  { collectionIds }: SearchScope,
  { rightsFirstFilesMax }: SearchTuning,
): Promise<readonly QueriedIndex[]> {
  const ids = uuidArray(collectionIds)
  const rows = await transaction.execute<IndexRow>(sql`
    select used.id,
      bool_or(to_regclass('chunk_' || used.id || '_graph') is not null) as has_graph,
      (select count(*) > ${rightsFirstFilesMax} from (
        select from collection_file where collection_id = any(${ids})
        limit ${rightsFirstFilesMax + 1}) held) as has_many_files
    from collection cross join lateral (values (index_id), (target_index_id)) used (id)
    where collection.id = any(${ids}) and used.id is not null
    group by used.id order by used.id`)
  return rows.map(({ id, has_graph: hasGraph, has_many_files: hasManyFiles }) => ({
    id,
    hasGraph,
    hasManyFiles,
  }))
}

async function readPassages(
  transaction: Transaction,
  hits: readonly ScoredHit[],
): Promise<ReadonlyMap<string, StoredPassage>> {
  const passages = new Map<string, StoredPassage>()
  for (const [indexId, scored] of Map.groupBy(hits, ({ hit }) => hit.indexId)) {
    const wanted = scored.map(({ hit }) => ({ id: hit.chunkId, collection_id: hit.collectionId }))
    const rows = await transaction.execute<
      Omit<StoredPassage, 'attributes'> & { attributes: string }
    >(sql`
      select chunk.id as "chunkId", chunk.file_id as "fileId", chunk.text, chunk.ordinal, chunk.page,
        chunk.start_char as start, chunk.end_char as "end", node.name as filename,
        (file.attributes || member.attributes)::text as attributes
      from json_to_recordset(${JSON.stringify(wanted)}::json) as wanted(id uuid, collection_id uuid)
      join ${chunkTable(indexId)} chunk on chunk.id = wanted.id
      join node on node.id = chunk.file_id
      join file on file.node_id = node.id
      join collection_file member on member.file_id = chunk.file_id
        and member.collection_id = wanted.collection_id`)
    for (const row of rows) {
      passages.set(row.chunkId, { ...row, attributes: JSON.parse(row.attributes) })
    }
  }
  return passages
}
