import type { Embedders } from '#embedding/embedder.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext, RequestPrincipal } from '#lib/request-context.ts'
import { sqlStateOf } from '#lib/sql-state.ts'
import type { Rerankers } from '#rerank/reranker.ts'
import type { IndexDatabase } from '#retrieval/index/store.ts'
import type { RetrievalSettings } from '#retrieval/settings.ts'
import type { Log } from '#telemetry/log.ts'
import { type FusedHits, fuse } from './fuse.ts'
import { type SearchTuning, searchTuning } from './hit-store.ts'
import { keywordsOf } from './keywords.ts'
import { embedQueries, type QueryVectors, rerankPassages } from './model-calls.ts'
import type { Search, SearchRequest, SearchResponse, SearchResult } from './search.ts'
import { type SearchedCollection, type StoredPassage, searchStore } from './store.ts'

export type SearchDeps = {
  database: IndexDatabase
  embedders: Embedders
  rerankers: Rerankers
  settings: RetrievalSettings
  log: Pick<Log, 'warn'>
  tuning?: SearchTuning
}

/** Hits per ranking: the best results after fusion are rarely below these ranks. */
const hitsMin = 50
const hitsPerResult = 4
/** A reindex that completes during a search changes its indexes. */
const plansMax = 4
/** SQLSTATE: the table of an index was dropped. */
const undefinedTable = '42P01'
/** SQLSTATE: statement timeout. */
const queryCanceled = '57014'

type Store = ReturnType<typeof searchStore>

type SearchParams = { readonly context: RequestContext; readonly request: SearchRequest }

type SearchPlan = {
  readonly collections: readonly SearchedCollection[]
  readonly absent: readonly string[]
  readonly vectors: QueryVectors
  readonly resultsMax: number
  /** Hits per ranking, from which the results are chosen. */
  readonly hitsMax: number
  readonly rerankModel: string | null
}

type FoundPassages = {
  readonly fused: FusedHits
  readonly passages: ReadonlyMap<string, StoredPassage>
  /** The names of collections by chunk id. */
  readonly collectionNames: ReadonlyMap<string, string>
}

type RankedChunks = {
  readonly kind: SearchResponse['scoreKind']
  readonly scored: readonly { readonly chunkId: string; readonly score: number }[]
}

export function createSearch(deps: SearchDeps): Search {
  const store = searchStore(deps.database, deps.tuning ?? searchTuning)
  return async (context, request) => {
    const startedAtMs = performance.now()
    const params = { context, request }
    for (let attempt = 1; ; attempt++) {
      const plan = await makePlan(deps, store, params)
      const found = await find(store, plan, params).catch((error: unknown) => {
        const state = sqlStateOf(error)
        if (state === undefinedTable) return undefined
        throw state === queryCanceled ? unavailable('The search timed out.', error) : error
      })
      context.signal.throwIfAborted()
      if (found !== undefined) {
        const { ranked, hasFailed } = await rank(deps, plan, found, params)
        const results = ranked.scored.flatMap(({ chunkId, score }): SearchResult[] => {
          const passage = found.passages.get(chunkId)
          if (passage === undefined) return []
          return [resultOf(passage, score, found.collectionNames.get(chunkId) ?? '')]
        })
        return {
          results,
          mode: request.mode,
          scoreKind: ranked.kind,
          degraded: [
            ...(plan.vectors.hasFailed ? ['vector'] : []),
            ...(hasFailed ? ['reranker'] : []),
          ],
          indexes: indexesOf(plan.collections),
          absent: plan.absent,
          tookMs: Math.round(performance.now() - startedAtMs),
        }
      }
      if (attempt === plansMax) throw unavailable('The index is being replaced.')
    }
  }
}

async function makePlan(
  deps: SearchDeps,
  store: Store,
  { context, request }: SearchParams,
): Promise<SearchPlan> {
  const { retrievalK, rerankTopN, rerankModel } = deps.settings()
  if (request.rerank === true && rerankModel === null) {
    throw new AppError('unprocessable', 'No model of mode rerank is configured.', {
      param: 'rerank',
      code: 'reranker_not_configured',
    })
  }
  const topK = request.topK ?? retrievalK
  const isReranked = rerankModel !== null && request.rerank !== false
  const { collections, absent } = await resolveCollections(store, context.principal, request)
  const queries = request.mode === 'keyword' ? [] : request.queries
  return {
    collections,
    absent,
    vectors: await embedQueries(deps, { queries, indexes: allIndexes(collections), context }),
    resultsMax: isReranked ? Math.min(rerankTopN ?? topK, topK) : topK,
    hitsMax: Math.max(hitsMin, hitsPerResult * topK),
    rerankModel: isReranked ? rerankModel : null,
  }
}

/** Each collection once; throws `not_found` for a required one that the caller does not see. */
async function resolveCollections(
  store: Store,
  caller: RequestPrincipal,
  { collections: required, optionalCollections: optional = [] }: SearchRequest,
): Promise<Pick<SearchPlan, 'collections' | 'absent'>> {
  const visible = await store.resolve(caller, [...new Set([...required, ...optional])])
  const find = (nameOrId: string) =>
    visible.find(({ id, name }) => name === nameOrId || id === nameOrId.toLowerCase())
  const found = required.map((nameOrId) => {
    const match = find(nameOrId)
    if (match !== undefined) return match
    throw new AppError('not_found', `There is no collection "${nameOrId}".`)
  })
  return {
    collections: [...new Set([...found, ...optional.flatMap((name) => find(name) ?? [])])],
    absent: optional.filter((name) => find(name) === undefined),
  }
}

async function find(
  store: Store,
  plan: SearchPlan,
  { context, request }: SearchParams,
): Promise<FoundPassages | undefined> {
  const { collections, vectors, hitsMax } = plan
  const models = new Map(allIndexes(collections).map(({ id, model }) => [id, model]))
  if (request.mode === 'vector' && vectors.byQuery.every(({ size }) => size === 0)) {
    throw unavailable('The query could not be embedded.')
  }
  let fused: FusedHits = { kind: 'text', scored: [] }
  const found = await store.find({
    scope: {
      caller: context.principal,
      filters: request.filters,
      collectionIds: collections.map(({ id }) => id),
    },
    queries: request.queries.map((query, index) => ({
      keywords: request.mode === 'vector' ? null : keywordsOf(query),
      vectors: vectors.byQuery[index] ?? new Map(),
    })),
    indexIds: new Set(models.keys()),
    hitsMax,
    select(hits) {
      fused = fuse(hits, (indexId) => models.get(indexId) ?? '')
      if (plan.rerankModel !== null) return fused.scored.slice(0, hitsMax)
      return aboveMin(fused, request.scoreMin).scored.slice(0, plan.resultsMax)
    },
  })
  if (found === undefined) return undefined
  const names = new Map(collections.map(({ id, name }) => [id, name]))
  return {
    fused: { ...fused, scored: found.selected },
    passages: found.passages,
    collectionNames: new Map(
      found.selected.map(({ hit }) => [hit.chunkId, names.get(hit.collectionId) ?? '']),
    ),
  }
}

/** Reranks if configured; keeps the fused order if the reranker fails. */
async function rank(
  deps: SearchDeps,
  { rerankModel: model, resultsMax }: SearchPlan,
  { fused, passages }: FoundPassages,
  { context, request }: SearchParams,
): Promise<{ ranked: RankedChunks; hasFailed: boolean }> {
  const byFusion: RankedChunks = {
    kind: fused.kind,
    scored: fused.scored.map(({ hit, score }) => ({ chunkId: hit.chunkId, score })),
  }
  if (model === null) return { ranked: byFusion, hasFailed: false }
  const reranked = await rerankPassages(deps, {
    model,
    query: request.queries.join('\n'),
    passages: byFusion.scored.flatMap(({ chunkId }) => passages.get(chunkId) ?? []),
    context,
  })
  const ranked: RankedChunks =
    reranked === undefined ? byFusion : { kind: 'rerank', scored: reranked }
  const { kind, scored } = aboveMin(ranked, request.scoreMin)
  return {
    ranked: { kind, scored: scored.slice(0, resultsMax) },
    hasFailed: reranked === undefined,
  }
}

/** Scores by rank are relative, so a minimum does not apply to them. */
function aboveMin<T extends { readonly score: number }, K extends SearchResponse['scoreKind']>(
  ranked: { readonly kind: K; readonly scored: readonly T[] },
  scoreMin: number | null,
): { readonly kind: K; readonly scored: readonly T[] } {
  if (scoreMin === null || ranked.kind === 'rrf' || ranked.kind === 'text') return ranked
  return { ...ranked, scored: ranked.scored.filter(({ score }) => score >= scoreMin) }
}

function resultOf(
  { chunkId, fileId, filename, attributes, text, ordinal, page, start, end }: StoredPassage,
  score: number,
  collection: string,
): SearchResult {
  const chunk = { id: chunkId, index: ordinal, page, start, end }
  return { fileId, filename, attributes, text, score, collection, chunk }
}

function allIndexes(collections: readonly SearchedCollection[]) {
  return collections.flatMap(({ source, target }) => [source, target ?? source])
}

function indexesOf(collections: readonly SearchedCollection[]): SearchResponse['indexes'] {
  const indexes = new Map<number, SearchResponse['indexes'][number]>()
  for (const { source, target } of collections) {
    indexes.set(source.id, { id: String(source.id), model: source.model, role: 'source' })
    if (target === null) continue
    indexes.set(target.id, { id: String(target.id), model: target.model, role: 'target' })
  }
  return [...indexes.values()]
}

function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('service_unavailable', message, {
    code: 'index_unavailable',
    retryAfterS: 1,
    cause,
  })
}
