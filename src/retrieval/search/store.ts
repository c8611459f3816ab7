import { sql } from 'drizzle-orm'
import { createQueryRunner } from '#db/query-runner.ts'
import { collection, embeddingIndex } from '#db/schema/retrieval.ts'
import type { Attributes } from '#files/files.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import { chunkTable, type IndexDatabase } from '#retrieval/index/store.ts'
import type { Hit, Scored } from './fuse.ts'
import { type AskedIndex, askIndex, type Question, type SearchTuning } from './hit-store.ts'
import { rankOnCollection, type Scope, textArray } from './scope-store.ts'

/** A statement of a server may take so long; the embedded engine cannot be told. */
const statementMsMax = 10_000

/** A collection that the caller sees, and the indexes that its files are in. */
export type SearchedCollection = {
  readonly id: string
  readonly name: string
  readonly source: SearchedIndex
  readonly target: SearchedIndex | null
}

export type SearchedIndex = { readonly id: number; readonly model: string; readonly dims: number }

export type Passage = {
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

type FindRequest = {
  readonly scope: Scope
  readonly questions: readonly Question[]
  /** All that were asked for; a file in another one means that the plan is out of date. */
  readonly indexIds: ReadonlySet<number>
  /** How many each way of searching gives. */
  readonly hitsMax: number
  /** Which of the hits, by question, are worth their text. */
  choose(hits: readonly (readonly Hit[])[]): readonly Scored[]
}

export function searchStore({ drizzle, kind }: IndexDatabase, tuning: SearchTuning) {
  const ask = createQueryRunner()
  return {
    /** Those of the names or ids that the caller sees. */
    resolve: (caller: RequestPrincipal, named: readonly string[]): Promise<SearchedCollection[]> =>
      ask(async () => {
        const rows = await drizzle.execute<CollectionRow>(sql`
          select collection.id, collection.name,
            source.id as source_id, source.model as source_model, source.dims as source_dims,
            target.id as target_id, target.model as target_model, target.dims as target_dims
          from ${collection}
          join ${embeddingIndex} source on source.id = collection.index_id
          left join ${embeddingIndex} target on target.id = collection.target_index_id
          where (collection.name = any(${textArray(named)})
              or collection.id = any(${`{${named.filter(isUuid).join(',')}}`}::uuid[]))
            and ${rankOnCollection(caller)} is not null`)
        return rows.map(collectionOf)
      }),

    /** One state of the database from beginning to end; undefined where the plan is out of date. */
    find: (request: FindRequest) =>
      drizzle.transaction(
        async (transaction) => {
          await applySettings(transaction, tuning)
          const indexes = await readIndexes(transaction, request.scope, tuning)
          if (indexes.some(({ id }) => !request.indexIds.has(id))) return undefined
          const asking = { ...request, transaction, kind, tuning }
          const hits = []
          for (const question of request.questions) {
            const found = []
            for (const index of indexes) found.push(await askIndex({ ...asking, index, question }))
            hits.push(found.flat())
          }
          const chosen = request.choose(hits)
          return { chosen, passages: await readPassages(transaction, chosen) }
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
  // Compiling a plan takes longer than any of these takes to run.
  const settings = { ...graphSettings, jit: 'off', statement_timeout: String(statementMsMax) }
  const calls = Object.entries(settings).map(
    ([name, value]) => sql`set_config(${name}, ${value}, true)`,
  )
  await transaction.execute(sql`select ${sql.join(calls, sql`, `)}`)
}

type IndexRow = { id: number; has_graph: boolean; has_many_files: boolean }

/** The indexes that the collections are in at this moment. */
async function readIndexes(
  transaction: Transaction,
  { collectionIds }: Scope,
  { rightsFirstFilesMax }: SearchTuning,
): Promise<readonly AskedIndex[]> {
  const ids = sql`${`{${collectionIds.join(',')}}`}::uuid[]`
  const rows = await transaction.execute<IndexRow>(sql`
    select place.id,
      bool_or(to_regclass('chunk_' || place.id || '_graph') is not null) as has_graph,
      (select count(*) > ${rightsFirstFilesMax} from (
        select from collection_file where collection_id = any(${ids})
        limit ${rightsFirstFilesMax + 1}) held) as has_many_files
    from collection cross join lateral (values (index_id), (target_index_id)) place (id)
    where collection.id = any(${ids}) and place.id is not null
    group by place.id order by place.id`)
  return rows.map(({ id, has_graph: hasGraph, has_many_files: hasManyFiles }) => ({
    id,
    hasGraph,
    hasManyFiles,
  }))
}

type PassageRow = {
  id: string
  file_id: string
  filename: string
  attributes: string
  text: string
  ordinal: number
  page: number | null
  start_char: number
  end_char: number
}

async function readPassages(
  transaction: Transaction,
  chosen: readonly Scored[],
): Promise<ReadonlyMap<string, Passage>> {
  const passages = new Map<string, Passage>()
  const byIndex = Map.groupBy(chosen, ({ hit }) => hit.indexId)
  for (const [indexId, scored] of byIndex) {
    const wanted = scored.map(({ hit }) => ({ id: hit.chunkId, collection_id: hit.collectionId }))
    const rows = await transaction.execute<PassageRow>(sql`
      select chunk.id, chunk.file_id, chunk.text, chunk.ordinal, chunk.page, chunk.start_char,
        chunk.end_char, node.name as filename,
        (file.attributes || member.attributes)::text as attributes
      from json_to_recordset(${JSON.stringify(wanted)}::json) as wanted(id uuid, collection_id uuid)
      join ${chunkTable(indexId)} chunk on chunk.id = wanted.id
      join node on node.id = chunk.file_id
      join file on file.node_id = node.id
      join collection_file member on member.file_id = chunk.file_id
        and member.collection_id = wanted.collection_id`)
    for (const row of rows) passages.set(row.id, passageOf(row))
  }
  return passages
}

function passageOf(row: PassageRow): Passage {
  return {
    chunkId: row.id,
    fileId: row.file_id,
    filename: row.filename,
    attributes: JSON.parse(row.attributes),
    text: row.text,
    ordinal: row.ordinal,
    page: row.page,
    start: row.start_char,
    end: row.end_char,
  }
}
