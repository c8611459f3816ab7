import type { Rerankers } from '#rerank/reranker.ts'
import type { Log } from '#telemetry/log.ts'
import type { Passage } from './store.ts'

/**
 * The passages as the reranker puts them, the best first; undefined where it fails, since an order
 * that is less good is better than none.
 */
export async function orderByReranker(
  { rerankers, log }: { rerankers: Rerankers; log: Pick<Log, 'warn'> },
  given: {
    model: string
    query: string
    passages: readonly Passage[]
    signal: AbortSignal
  },
): Promise<readonly { chunkId: string; score: number }[] | undefined> {
  const { model, query, passages, signal } = given
  if (passages.length === 0) return []
  try {
    const reranker = await rerankers.find(model)
    const documents = passages.map(({ text }) => text)
    const { results } = await reranker.rerank({ query, documents, topN: null }, signal)
    return results.flatMap(({ index, score }) => {
      const passage = passages[index]
      return passage === undefined ? [] : [{ chunkId: passage.chunkId, score }]
    })
  } catch (error) {
    if (signal.aborted) throw error
    log.warn('what was found cannot be reranked', { model, error })
    return undefined
  }
}
