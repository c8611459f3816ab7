/** What two ways of searching found, put into one order. */

export type Hit = {
  readonly chunkId: string
  readonly indexId: number
  readonly collectionId: string
  readonly fileId: string
  /** Of the cosine, 0 to 2; null: not among the nearest. */
  readonly distance: number | null
  /** 0 to 1; null: has none of the words. */
  readonly wordScore: number | null
}

export type Scored = { readonly hit: Hit; readonly score: number }

export type Fused = {
  readonly kind: 'rrf' | 'cosine' | 'text'
  /** The best first; each passage once. */
  readonly scored: readonly Scored[]
}

/** The usual constant: how little the first few ranks differ. */
const rankOffset = 60

/**
 * One order of the hits of all queries and indexes. Distances are compared within one model only,
 * since those of two mean nothing to each other; where more than one order is left, ranks decide.
 */
export function fuse(
  queries: readonly (readonly Hit[])[],
  modelOf: (indexId: number) => string,
): Fused {
  const byModel = queries.flatMap((hits) => nearestByModel(hits, modelOf))
  const byWords = queries.map(bestByWords).filter((list) => list.length > 0)
  const models = new Set(byModel.map(({ model }) => model))
  if (models.size === 0) return { kind: 'text', scored: best(byWords) }
  if (models.size === 1 && byWords.length === 0) {
    return { kind: 'cosine', scored: best(byModel.map(({ list }) => list)) }
  }
  const lists = [...byModel.map(({ list }) => list), ...byWords]
  return { kind: 'rrf', scored: byRanks(lists, queries.length) }
}

function nearestByModel(hits: readonly Hit[], modelOf: (indexId: number) => string) {
  const lists = new Map<string, Scored[]>()
  for (const hit of hits) {
    if (hit.distance === null) continue
    const model = modelOf(hit.indexId)
    lists.set(model, [...(lists.get(model) ?? []), { hit, score: 1 - hit.distance }])
  }
  return [...lists].map(([model, list]) => ({ model, list: sorted(list) }))
}

function bestByWords(hits: readonly Hit[]): readonly Scored[] {
  return sorted(
    hits.flatMap((hit) => (hit.wordScore === null ? [] : [{ hit, score: hit.wordScore }])),
  )
}

/** Each passage with the best of its scores. */
function best(lists: readonly (readonly Scored[])[]): readonly Scored[] {
  const known = new Map<string, Scored>()
  for (const scored of sorted(lists.flat())) {
    if (!known.has(scored.hit.chunkId)) known.set(scored.hit.chunkId, scored)
  }
  return [...known.values()]
}

/** Reciprocal rank fusion, as a part of what first places everywhere would give. */
function byRanks(lists: readonly (readonly Scored[])[], queryCount: number): readonly Scored[] {
  // A passage is in one index, so each query has at most its words and one model for it.
  const most = (2 * queryCount) / (rankOffset + 1)
  const known = new Map<string, Scored>()
  for (const list of lists) {
    list.forEach(({ hit }, index) => {
      const score = (known.get(hit.chunkId)?.score ?? 0) + 1 / (rankOffset + index + 1) / most
      known.set(hit.chunkId, { hit, score: Math.min(score, 1) })
    })
  }
  return sorted([...known.values()])
}

/** Equal scores keep their order, so that an answer does not change by chance. */
function sorted(list: readonly Scored[]): readonly Scored[] {
  return list.toSorted((one, other) => other.score - one.score)
}
