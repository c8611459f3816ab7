import { localHashModel } from '#embedding/local-hash.ts'

/** A passage found by vector search, by keyword search, or by both. */
export type Hit = {
  readonly chunkId: string
  readonly indexId: number
  readonly collectionId: string
  readonly fileId: string
  /** Cosine distance, 0 to 2; null: not among the nearest. */
  readonly distance: number | null
  /** 0 to 1; null: has none of the keywords. */
  readonly keywordScore: number | null
}

export type ScoredHit = { readonly hit: Hit; readonly score: number }

export type FusedHits = {
  readonly kind: 'rrf' | 'cosine' | 'text'
  /** Best first, each passage once. */
  readonly scored: readonly ScoredHit[]
}

/**
 * Passages near a query are about equally similar to it, so their rank counts: the first scores 1, the
 * eleventh one half.
 */
const rankOffset = 10

/**
 * `local-hash` finds common letters, which the keyword search of a good query finds better: its ranks
 * only decide between equal passages and add others after them.
 */
const localHashWeight = 0.01

/**
 * Merges the hits of all queries and indexes into one order. Meaning and keywords count the same: the
 * rank by each model, since distances are comparable within one model only, and the keyword score
 * relative to the best of the query. `bench/results/retrieval.md` compares this with other ways.
 */
export function fuse(
  queries: readonly (readonly Hit[])[],
  modelOf: (indexId: number) => string,
): FusedHits {
  const byModel = queries.flatMap((hits) => nearestByModel(hits, modelOf))
  const byKeywords = queries.map(rankByKeywords).filter((list) => list.length > 0)
  const models = new Set(byModel.map(({ model }) => model))
  if (models.size === 0) return { kind: 'text', scored: bestOf(byKeywords) }
  if (models.size === 1 && byKeywords.length === 0) {
    return { kind: 'cosine', scored: bestOf(byModel.map(({ list }) => list)) }
  }
  const lists = [
    ...byModel.map(({ model, list }) => ({ list: byRank(list), weight: weightOf(model) })),
    ...byKeywords.map((list) => ({ list: relativeToBest(list), weight: 1 })),
  ]
  // A passage is in one index, so each query ranks it at most by keywords and by one model.
  const weightMax = Math.max(...[...models].map(weightOf))
  return { kind: 'rrf', scored: addScores(lists, (1 + weightMax) * queries.length) }
}

function weightOf(model: string): number {
  return model === localHashModel ? localHashWeight : 1
}

function nearestByModel(hits: readonly Hit[], modelOf: (indexId: number) => string) {
  const lists = new Map<string, ScoredHit[]>()
  for (const hit of hits) {
    if (hit.distance === null) continue
    const model = modelOf(hit.indexId)
    lists.set(model, [...(lists.get(model) ?? []), { hit, score: 1 - hit.distance }])
  }
  return [...lists].map(([model, list]) => ({ model, list: sorted(list) }))
}

function rankByKeywords(hits: readonly Hit[]): readonly ScoredHit[] {
  return sorted(
    hits.flatMap((hit) => (hit.keywordScore === null ? [] : [{ hit, score: hit.keywordScore }])),
  )
}

/** Each passage with its best score. */
function bestOf(lists: readonly (readonly ScoredHit[])[]): readonly ScoredHit[] {
  const best = new Map<string, ScoredHit>()
  for (const scored of sorted(lists.flat())) {
    if (!best.has(scored.hit.chunkId)) best.set(scored.hit.chunkId, scored)
  }
  return [...best.values()]
}

function byRank(list: readonly ScoredHit[]): readonly ScoredHit[] {
  return list.map(({ hit }, at) => ({ hit, score: rankOffset / (rankOffset + at) }))
}

function relativeToBest(list: readonly ScoredHit[]): readonly ScoredHit[] {
  const best = list[0]?.score || 1
  return list.map(({ hit, score }) => ({ hit, score: score / best }))
}

/** Scaled so that the best of every list scores 1. */
function addScores(
  lists: readonly { readonly list: readonly ScoredHit[]; readonly weight: number }[],
  scoreMax: number,
): readonly ScoredHit[] {
  const sums = new Map<string, ScoredHit>()
  for (const { list, weight } of lists) {
    for (const { hit, score } of list) {
      const known = sums.get(hit.chunkId)?.score ?? 0
      sums.set(hit.chunkId, { hit, score: Math.min(known + (weight * score) / scoreMax, 1) })
    }
  }
  return sorted([...sums.values()])
}

/** Stable, so that equal scores always come in the same order. */
function sorted(list: readonly ScoredHit[]): readonly ScoredHit[] {
  return list.toSorted((one, other) => other.score - one.score)
}
