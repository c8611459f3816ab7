import type { Embedders } from '#embedding/embedder.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import { createChunkTables } from '#retrieval/index/tables.ts'
import { createSearch } from '#retrieval/search/create-search.ts'
import type { SearchTuning } from '#retrieval/search/hit-store.ts'
import type { SearchMode, SearchResult } from '#retrieval/search/search.ts'
import type { TestDatabase } from './database.ts'
import { quietLog } from './quiet-log.ts'
import { type StoredCollection, storeCollection, storeIngested } from './stored-collections.ts'
import { storeNodes } from './stored-files.ts'

export type StoredPassage = { readonly text: string; readonly vector: Float32Array }

const model = 'm'
const collectionName = 'all'

/** Inserts a collection and the rows of an ingest, without statistics; all files have equally many passages. */
export async function storePassages(
  database: TestDatabase,
  {
    files,
    ...collection
  }: Pick<StoredCollection, 'ownerId' | 'addedBy' | 'accessMode'> & {
    files: ReadonlyMap<string, readonly StoredPassage[]>
  },
): Promise<{ collectionId: string; chunkTable: string }> {
  const fileIds = [...files.keys()]
  const [first = []] = files.values()
  const jobs = { add: async () => {}, process: () => ({ stop() {} }) }
  const tables = createChunkTables({ database, jobs, now: () => new Date() })
  const dims = first[0]?.vector.length ?? 0
  const index = await tables.provide({
    model,
    dims,
    chunkTokensMax: 800,
    chunkOverlapTokens: 100,
    partTokensMax: null,
  })
  await storeNodes(
    database,
    fileIds.map((id) => ({ id, ownerId: collection.ownerId, parentId: null })),
  )
  const collectionId = crypto.randomUUID()
  const indexed = { indexId: index.id, fileIds }
  await storeCollection(database, {
    ...indexed,
    ...collection,
    id: collectionId,
    name: collectionName,
  })
  await storeIngested(database, { ...indexed, chunksPerFile: first.length })
  for (const [fileId, passages] of files) {
    const chunks = passages.map(({ text, vector }, ordinal) => ({
      ordinal,
      text,
      vector,
      page: null,
      start: 0,
      end: text.length,
    }))
    await database.drizzle.transaction((transaction) =>
      tables.replace(transaction, index, fileId, chunks),
    )
  }
  return { collectionId, chunkTable: `chunk_${index.id}` }
}

type PassageSearch = {
  readonly userId: string
  readonly query: string
  readonly mode: SearchMode
  readonly topK: number
  readonly tuning: SearchTuning
  /** The vector of the query, except in mode `keyword`. */
  readonly vector?: Float32Array
}

/** Searches the collection of `storePassages`. */
export async function searchPassages(
  database: TestDatabase,
  { userId, query, mode, topK, tuning, vector = new Float32Array() }: PassageSearch,
): Promise<readonly SearchResult[]> {
  const settings = { retrieval_k: 10, rerank_top_n: null, reranker_model: null }
  const embed = async () => ({ vectors: [vector], dims: vector.length, inputTokens: null })
  const embedders: Embedders = { find: async (named) => ({ model: named, embed }) }
  const rerankers = { find: () => Promise.reject(new Error('there is none')) }
  const search = createSearch({
    database,
    log: quietLog,
    tuning,
    embedders,
    rerankers,
    settings: { current: () => settings },
  })
  const signal = new AbortController().signal
  const context = createBackgroundContext(signal, { userId, groups: [] })
  const { results } = await search(context, {
    collections: [collectionName],
    queries: [query],
    filters: [],
    mode,
    topK,
    scoreMin: null,
    rerank: null,
  })
  return results
}
