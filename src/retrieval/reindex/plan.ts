import { AppError } from '#lib/errors.ts'
import { refused } from '#lib/unprocessable.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'
import { indexSpecFor } from '#retrieval/index/parts.ts'
import { countFiles } from './file-store.ts'
import type { ModelProbe } from './probe.ts'
import type { ReindexEstimate } from './record.ts'
import type { ReindexParams } from './reindex.ts'
import type { RoutedCollection } from './routing-store.ts'
import type { Handle } from './store.ts'
import { measurePassages } from './verification-store.ts'

/** Collections that move together from one index to another. */
export type ReindexPlan = {
  readonly sourceIndexId: number
  readonly source: IndexSpec
  readonly target: IndexSpec
  readonly collectionIds: readonly string[]
}

/** Names per error message. */
const namesMax = 20
/** Average of prose in most languages. */
const charsPerToken = 3.6

/** `collections` are the named ones, or all. Throws as `Reindexes.start` says. */
export function planReindex(
  collections: readonly RoutedCollection[],
  params: ReindexParams,
  probe: ModelProbe,
): ReindexPlan {
  const moving = collections.find(({ targetIndexId: id }) => id !== null)
  if (moving !== undefined) throw reindexRunning(moving.name)
  const targetOf = targetSpecFor(params, probe)
  // Compares the dimensions too, since a model can be replaced under the same name.
  const outdated = collections.filter((one) => !Bun.deepEquals(specOf(one), targetOf(one)))
  const [first] = outdated
  if (first === undefined) {
    const message =
      collections.length === 0
        ? 'There is no collection.'
        : `The collections already use "${probe.model}" with this chunking.`
    throw refused('embedding_model', message, 'already_current')
  }
  requireOneSource(outdated)
  return {
    sourceIndexId: first.indexId,
    source: specOf(first),
    target: targetOf(first),
    collectionIds: outdated.map(({ id }) => id),
  }
}

/** Two concurrent reindexes of a collection would lose files. */
export function reindexRunning(name: string | null): AppError {
  const what = name === null ? 'these collections' : `the collection "${name}"`
  return new AppError('conflict', `A reindex of ${what} is running.`, { code: 'reindex_running' })
}

/** From the passages of the source and the speed of the probe. */
export async function estimateReindex(
  handle: Handle,
  { sourceIndexId, source, target, collectionIds }: ReindexPlan,
  { dims, charsPerS }: ModelProbe,
): Promise<ReindexEstimate> {
  const total = await countFiles(handle, collectionIds)
  const { passages, chars } = await measurePassages(handle, sourceIndexId, collectionIds)
  const embeddedChars = passages * chars * (newShare(source) / newShare(target))
  return {
    total,
    est_tokens: Math.ceil(embeddedChars / charsPerToken),
    est_seconds: Math.ceil(embeddedChars / charsPerS),
    dims,
  }
}

/** The share of a passage that does not repeat the previous one. */
function newShare({ chunkTokensMax, chunkOverlapTokens }: IndexSpec): number {
  return 1 - chunkOverlapTokens / chunkTokensMax
}

function requireOneSource(collections: readonly RoutedCollection[]): void {
  const byIndex = Map.groupBy(collections, ({ indexId: id }) => id)
  if (byIndex.size === 1) return
  const groups = [...byIndex.values()].map((group) => {
    const names = group.slice(0, namesMax).map(({ name }) => name)
    return names.join(', ') + (group.length > namesMax ? ' …' : '')
  })
  throw refused(
    'collections',
    `These collections are in ${byIndex.size} indexes, each of which needs its own reindex: ${groups.join('; ')}.`,
    'several_source_indexes',
  )
}

function targetSpecFor({ chunking }: ReindexParams, probe: ModelProbe) {
  return (collection: RoutedCollection) => indexSpecFor(probe, chunking ?? null, collection)
}

function specOf(collection: RoutedCollection): IndexSpec {
  const { model, dims, chunkTokensMax, chunkOverlapTokens, partTokensMax } = collection
  return { model, dims, chunkTokensMax, chunkOverlapTokens, partTokensMax }
}
