import type { Embedders } from '#embedding/embedder.ts'
import type { Log } from '#telemetry/log.ts'
import type { SearchedIndex } from './store.ts'

export type QueryVectors = {
  /** For each query: by index. What could not be asked is not there. */
  readonly byQuery: readonly ReadonlyMap<number, Float32Array>[]
  readonly hasFailed: boolean
}

/** The queries as each index understands them: every model is asked once, all at the same time. */
export async function embedQueries(
  { embedders, log }: { embedders: Embedders; log: Pick<Log, 'warn'> },
  given: { queries: readonly string[]; indexes: readonly SearchedIndex[]; signal: AbortSignal },
): Promise<QueryVectors> {
  const { queries, indexes, signal } = given
  if (queries.length === 0) return { byQuery: [], hasFailed: false }
  const models = [...new Set(indexes.map(({ model }) => model))]
  const answers = await Promise.all(
    models.map(async (model) => {
      try {
        const embedder = await embedders.find(model)
        const { vectors } = await embedder.embed(queries, { purpose: 'query', signal })
        return [model, vectors] as const
      } catch (error) {
        if (signal.aborted) throw error
        log.warn('a query cannot be embedded', { model, error })
        return [model, []] as const
      }
    }),
  )
  const byModel = new Map<string, readonly Float32Array[]>(answers)
  const byQuery = queries.map((_, at) => {
    const usable = indexes.flatMap(({ id, model, dims }) => {
      const vector = byModel.get(model)?.[at]
      // A model that has changed under its name gives vectors that mean nothing here.
      return vector?.length === dims ? [[id, vector] as const] : []
    })
    return new Map(usable)
  })
  return {
    byQuery,
    hasFailed: byQuery.some((vectors) => indexes.some(({ id }) => !vectors.has(id))),
  }
}
