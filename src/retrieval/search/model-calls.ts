import type { Embedders } from '#embedding/embedder.ts'
import { type RequestContext, withoutKey } from '#lib/request-context.ts'
import type { Rerankers } from '#rerank/reranker.ts'
import type { CollectionIndex } from '#retrieval/collections/collections.ts'
import type { Log } from '#telemetry/log.ts'
import type { SearchResult } from './search.ts'

/** Calls of models during a search. A failing model degrades the result; it does not fail the search. */

export type QueryVectors = {
  /** For each query the vectors by index id; indexes of failed models are absent. */
  readonly byQuery: readonly ReadonlyMap<number, Float32Array>[]
  readonly hasFailed: boolean
}

/** Embeds the queries for all indexes, with one concurrent call per model. */
export async function embedQueries(
  { embedders, log }: { embedders: Embedders; log: Pick<Log, 'warn'> },
  params: {
    queries: readonly string[]
    indexes: readonly CollectionIndex[]
    context: RequestContext
  },
): Promise<QueryVectors> {
  const { queries, indexes, context } = params
  if (queries.length === 0) return { byQuery: [], hasFailed: false }
  const models = [...new Set(indexes.map(({ model }) => model))]
  const vectorsByModel = new Map<string, readonly Float32Array[]>()
  await Promise.all(
    models.map(async (model) => {
      try {
        const embedder = await embedders.find(model, withoutKey(context.principal))
        const { vectors } = await embedder.embed(queries, { purpose: 'query', context })
        vectorsByModel.set(model, vectors)
      } catch (error) {
        if (context.signal.aborted) throw error
        log.warn('query embedding failed', { model, error })
      }
    }),
  )
  const byQuery = queries.map((_, position) => {
    const usable = indexes.flatMap(({ id, model, dims }) => {
      const vector = vectorsByModel.get(model)?.[position]
      // A model replaced under the same name returns vectors that do not fit the index.
      return vector?.length === dims ? [[id, vector] as const] : []
    })
    return new Map(usable)
  })
  return {
    byQuery,
    hasFailed: byQuery.some((vectors) => indexes.some(({ id }) => !vectors.has(id))),
  }
}

/** The passages in the order of the reranker, best first; undefined if it fails. */
export async function rerankPassages<T extends SearchResult>(
  { rerankers, log }: { rerankers: Rerankers; log: Pick<Log, 'warn'> },
  params: {
    model: string
    query: string
    passages: readonly T[]
    context: RequestContext
  },
): Promise<readonly T[] | undefined> {
  const { model, query, passages, context } = params
  if (passages.length === 0) return []
  try {
    const reranker = await rerankers.find(model, withoutKey(context.principal))
    const documents = passages.map(({ text }) => text)
    const { results } = await reranker.rerank({ query, documents, topN: null }, context)
    return results.flatMap(({ index, score }) => {
      const passage = passages[index]
      return passage === undefined
        ? []
        : [{ ...passage, score, match: { ...passage.match, rerank: score } }]
    })
  } catch (error) {
    if (context.signal.aborted) throw error
    log.warn('reranking failed', { model, error })
    return undefined
  }
}
