import { AppError } from '#lib/errors.ts'
import { refused } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'
import type { Probe } from './probe.ts'
import type { ReindexParams } from './reindex.ts'
import type { Place } from './routing-store.ts'

/** Collections that change together, from one index to one other. */
export type Choice = {
  readonly sourceIndexId: number
  readonly source: IndexSpec
  readonly target: IndexSpec
  readonly collectionIds: readonly string[]
}

/** A sentence names so many at most. */
const namesMax = 20

/** `places`: those that are named, or all. See `Reindexes.start` for what this throws. */
export function choose(places: readonly Place[], wish: ReindexParams, probe: Probe): Choice {
  demandAll(places, wish)
  const moving = places.find(({ target_index_id: id }) => id !== null)
  if (moving !== undefined) throw isRunning(moving.name)
  const specOf = targetOf(wish, probe)
  const wanted = places.filter((place) => !isSame(sourceOf(place), specOf(place)))
  const [first] = wanted
  if (first === undefined) {
    const sentence =
      places.length === 0
        ? 'There is no collection.'
        : `The collections are in an index of "${probe.model}" with this chunking already.`
    throw refused('embedding_model', sentence, 'already_current')
  }
  demandOneSource(wanted)
  return {
    sourceIndexId: first.index_id,
    source: sourceOf(first),
    target: specOf(first),
    collectionIds: wanted.map(({ id }) => id),
  }
}

/** Two at once would each take the other's files away from under it. */
export function isRunning(name: string | null): AppError {
  const what = name === null ? 'These collections are' : `The collection "${name}" is`
  return new AppError('conflict', `${what} on the way to another index already.`, {
    code: 'reindex_running',
  })
}

function demandAll(places: readonly Place[], { collections }: ReindexParams): void {
  for (const [at, named] of (collections ?? []).entries()) {
    const isKnown = places.some(({ id, name }) =>
      isUuid(named) ? id === named.toLowerCase() : name === named,
    )
    if (isKnown) continue
    const sentence = `There is no collection "${named}".`
    throw refused(`collections[${at}]`, sentence, 'collection_not_found')
  }
}

/** A run is the change of one index; who wants several of them changed says which comes first. */
function demandOneSource(places: readonly Place[]): void {
  const byIndex = Map.groupBy(places, ({ index_id: id }) => id)
  if (byIndex.size === 1) return
  const groups = [...byIndex.values()].map((group) => {
    const names = group.slice(0, namesMax).map(({ name }) => name)
    return names.join(', ') + (group.length > namesMax ? ' …' : '')
  })
  throw refused(
    'collections',
    `These collections are in ${byIndex.size} indexes, each of which changes by a reindex of its own. Together go: ${groups.join('; ')}.`,
    'several_source_indexes',
  )
}

function targetOf({ chunking }: ReindexParams, { model, dims }: Probe) {
  return (place: Place): IndexSpec => ({
    model,
    dims,
    chunkTokensMax: chunking?.tokensMax ?? place.chunk_tokens_max,
    chunkOverlapTokens: chunking?.overlapTokens ?? place.chunk_overlap_tokens,
  })
}

function sourceOf(place: Place): IndexSpec {
  return {
    model: place.model,
    dims: place.dims,
    chunkTokensMax: place.chunk_tokens_max,
    chunkOverlapTokens: place.chunk_overlap_tokens,
  }
}

/** A model that has changed under its name gives vectors of another length. */
function isSame(one: IndexSpec, other: IndexSpec): boolean {
  return (
    one.model === other.model &&
    one.dims === other.dims &&
    one.chunkTokensMax === other.chunkTokensMax &&
    one.chunkOverlapTokens === other.chunkOverlapTokens
  )
}
