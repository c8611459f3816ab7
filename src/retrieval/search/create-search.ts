import type { Embedders } from '#embedding/embedder.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext, RequestPrincipal } from '#lib/request-context.ts'
import { sqlStateOf } from '#lib/sql-state.ts'
import type { Rerankers } from '#rerank/reranker.ts'
import { collectionExpired } from '#retrieval/collections/rights-store.ts'
import type { IndexDatabase } from '#retrieval/index/store.ts'
import type { ConfigValues } from '#settings/schema.ts'
import type { Log } from '#telemetry/log.ts'
import { fuse } from './fuse.ts'
import { type SearchTuning, searchTuning } from './hit-store.ts'
import { keywordsOf } from './keywords.ts'
import { embedQueries, rerankPassages } from './model-calls.ts'
import type { Search, SearchRequest, SearchResponse } from './search.ts'
import { type SearchedCollection, searchStore } from './store.ts'
import { widenPassages } from './widen.ts'

export type SearchDeps = {
  database: IndexDatabase
  embedders: Embedders
  rerankers: Rerankers
  /** Read for each search. */
  settings: {
    current(): Pick<ConfigValues, 'retrieval_k' | 'rerank_top_n' | 'reranker_model'>
  }
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

export function createSearch(deps: SearchDeps): Search {
  const store = searchStore(deps.database, deps.tuning ?? searchTuning)

  async function makePlan(context: RequestContext, request: SearchRequest) {
    const { retrieval_k, rerank_top_n, reranker_model } = deps.settings.current()
    if (request.rerank === true && reranker_model === null) {
      throw new AppError('unprocessable', 'No model of mode rerank is configured.', {
        param: 'rerank',
        code: 'reranker_not_configured',
      })
    }
    const topK = request.topK ?? retrieval_k
    const rerankModel = request.rerank === false ? null : reranker_model
    const { collections, absent } = await resolveCollections(context.principal, request)
    const indexes = collections.flatMap(({ source, target }) => [source, target ?? source])
    const queries = request.mode === 'keyword' ? [] : request.queries
    return {
      collections,
      absent,
      indexes,
      vectors: await embedQueries(deps, { queries, indexes, context }),
      resultsMax: rerankModel === null ? topK : Math.min(rerank_top_n ?? topK, topK),
      /** Hits per ranking, from which the results are chosen. */
      hitsMax: Math.max(hitsMin, hitsPerResult * topK),
      rerankModel,
    }
  }

  /** Each collection once; throws `not_found` for a required one that the caller does not see. */
  async function resolveCollections(
    caller: RequestPrincipal,
    { collections: required, agentCollections: optional = [] }: SearchRequest,
  ) {
    const resolved = await store.resolve(caller, [...required, ...optional])
    const expired = resolved.slice(0, required.length).find((one) => one?.isExpired)
    if (expired !== undefined) throw collectionExpired(expired.name)
    const found = resolved.map((one) => (one?.isExpired ? undefined : one))
    const missing = required.find((_, index) => found[index] === undefined)
    if (missing !== undefined) {
      throw new AppError('not_found', `There is no collection "${missing}".`)
    }
    const collections = found.filter((one) => one !== undefined)
    return {
      collections: [...new Map(collections.map((one) => [one.id, one])).values()],
      absent: optional.filter((_, index) => found[required.length + index] === undefined),
    }
  }

  /** Undefined if the indexes have changed since the plan. */
  async function find(
    { collections, indexes, vectors, hitsMax, resultsMax, rerankModel }: SearchPlan,
    context: RequestContext,
    request: SearchRequest,
  ) {
    const models = new Map(indexes.map(({ id, model }) => [id, model]))
    if (request.mode === 'vector' && vectors.byQuery.every(({ size }) => size === 0)) {
      throw unavailable('The query could not be embedded.')
    }
    const params = {
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
    }
    const found = store.find(params, (hits, partsMax) => {
      const fused = fuse(hits, (indexId) => models.get(indexId) ?? '')
      if (rerankModel !== null) return { ...fused, scored: fused.scored.slice(0, hitsMax) }
      // Better results contain some of them.
      return best(fused, request.scoreMin, resultsMax * partsMax)
    })
    return found.catch((error: unknown) => {
      const state = sqlStateOf(error)
      if (state === undefinedTable) return undefined
      throw state === queryCanceled ? unavailable('The search timed out.', error) : error
    })
  }
  type SearchPlan = Awaited<ReturnType<typeof makePlan>>

  return async (context, request) => {
    const startedAtMs = performance.now()
    for (let attempt = 1; attempt <= plansMax; attempt++) {
      const plan = await makePlan(context, request)
      const fused = await find(plan, context, request)
      context.signal.throwIfAborted()
      if (fused === undefined) continue
      const { rerankModel: model, vectors } = plan
      const query = request.queries.join('\n')
      const reranked =
        model === null
          ? null
          : await rerankPassages(deps, { model, query, passages: fused.scored, context })
      // The fused order is kept if the reranker fails.
      const ranked = reranked ? { kind: 'rerank' as const, scored: reranked } : fused
      const { kind, scored } = best(ranked, request.scoreMin, ranked.scored.length)
      return {
        results: widenPassages(scored).slice(0, plan.resultsMax),
        mode: request.mode,
        scoreKind: kind,
        degraded: [
          ...(vectors.hasFailed ? ['vector'] : []),
          ...(reranked === undefined ? ['reranker'] : []),
        ],
        indexes: indexesOf(plan.collections),
        reranker: reranked ? model : null,
        absent: plan.absent,
        tookMs: Math.round(performance.now() - startedAtMs),
      }
    }
    throw unavailable('The index is being replaced.')
  }
}

/** The first results. Scores by rank are relative, so a minimum does not apply to them. */
function best<T extends { readonly score: number }, K extends SearchResponse['scoreKind']>(
  { kind, scored }: { readonly kind: K; readonly scored: readonly T[] },
  scoreMin: number | null,
  resultsMax: number,
) {
  const isRelative = scoreMin === null || kind === 'rrf' || kind === 'text'
  const passed = isRelative ? scored : scored.filter(({ score }) => score >= scoreMin)
  return { kind, scored: passed.slice(0, resultsMax) }
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
