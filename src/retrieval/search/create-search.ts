import type { Embedders } from '#embedding/embedder.ts'
import { AppError } from '#lib/errors.ts'
import { sqlStateOf } from '#lib/sql-state.ts'
import type { Rerankers } from '#rerank/reranker.ts'
import type { IndexDatabase } from '#retrieval/index/store.ts'
import type { RetrievalSettings } from '#retrieval/settings.ts'
import type { Log } from '#telemetry/log.ts'
import { embedQueries, type QueryVectors } from './embed-queries.ts'
import { type Fused, fuse } from './fuse.ts'
import { type SearchTuning, searchTuning } from './hit-store.ts'
import { orderByReranker } from './order-by-reranker.ts'
import type { Search, SearchAnswer, SearchRequest, SearchResult } from './search.ts'
import { searchWords } from './stop-words.ts'
import { type Passage, type SearchedCollection, searchStore } from './store.ts'

export type SearchDeps = {
  database: IndexDatabase
  embedders: Embedders
  rerankers: Rerankers
  settings: RetrievalSettings
  log: Pick<Log, 'warn'>
  tuning?: SearchTuning
}

/** Each way of searching gives so many at least: the best of all is rarely below it in one of them. */
const hitsMin = 50
const hitsPerResult = 4
/** A reindex that ends while we search changes where to look. */
const plansMax = 4
/** PostgreSQL: the table is not there (any more). */
const missingTable = '42P01'
/** PostgreSQL: the statement took longer than it may. */
const canceled = '57014'

type Store = ReturnType<typeof searchStore>

/** What is asked, with what was settled about it. */
type Plan = {
  readonly collections: readonly SearchedCollection[]
  readonly absent: readonly string[]
  readonly vectors: QueryVectors
  /** How many passages are wanted, and from how many they are chosen. */
  readonly wanted: number
  readonly hitsMax: number
  readonly rerankModel: string | null
}

type Ordered = {
  readonly kind: SearchAnswer['scoreKind']
  readonly scored: readonly { readonly chunkId: string; readonly score: number }[]
}

export function createSearch(deps: SearchDeps): Search {
  const store = searchStore(deps.database, deps.tuning ?? searchTuning)
  return async (caller, request, signal) => {
    const startedAt = performance.now()
    for (let planned = 1; ; planned++) {
      const plan = await makePlan(deps, store, { caller, request, signal })
      const found = await find(store, plan, { caller, request }).catch((error: unknown) => {
        const state = sqlStateOf(error)
        if (state === missingTable) return undefined
        throw state === canceled ? unavailable('The search takes too long.', error) : error
      })
      signal.throwIfAborted()
      if (found !== undefined) {
        const ordered = await order(deps, { plan, found, request, signal })
        return answerOf({ plan, request, found, ordered, startedAt })
      }
      if (planned === plansMax) throw unavailable('What is searched is changing just now.')
    }
  }
}

type Asked = {
  readonly caller: Parameters<Search>[0]
  readonly request: SearchRequest
  readonly signal: AbortSignal
}

async function makePlan(deps: SearchDeps, store: Store, asked: Asked): Promise<Plan> {
  const { caller, request, signal } = asked
  const { retrievalK, rerankTopN, rerankModel } = deps.settings()
  if (request.rerank === true && rerankModel === null) {
    throw new AppError('unprocessable', 'No model of mode rerank is configured.', {
      param: 'rerank',
      code: 'reranker_not_configured',
    })
  }
  const topK = request.topK ?? retrievalK
  const isReranked = rerankModel !== null && request.rerank !== false
  const { collections, absent } = await chooseCollections(store, caller, request)
  const indexes = collections.flatMap(({ source, target }) => [source, target ?? source])
  return {
    collections,
    absent,
    vectors: await embedQueries(deps, {
      queries: request.mode === 'keyword' ? [] : request.queries,
      indexes,
      signal,
    }),
    wanted: isReranked ? Math.min(rerankTopN ?? topK, topK) : topK,
    hitsMax: Math.max(hitsMin, hitsPerResult * topK),
    rerankModel: isReranked ? rerankModel : null,
  }
}

/** Those that are named, each once; throws for one that is hidden or not there, and is demanded. */
async function chooseCollections(
  store: Store,
  caller: Asked['caller'],
  { collections: demanded, collectionsIfVisible: welcome = [] }: SearchRequest,
): Promise<Pick<Plan, 'collections' | 'absent'>> {
  const known = await store.resolve(caller, [...new Set([...demanded, ...welcome])])
  const find = (word: string) =>
    known.find(({ id, name }) => name === word || id === word.toLowerCase())
  const found = demanded.map((word) => {
    const match = find(word)
    if (match !== undefined) return match
    throw new AppError('not_found', `There is no collection "${word}".`)
  })
  return {
    collections: [...new Set([...found, ...welcome.flatMap((word) => find(word) ?? [])])],
    absent: welcome.filter((word) => find(word) === undefined),
  }
}

type Found = { readonly fused: Fused; readonly passages: ReadonlyMap<string, Passage> } & {
  readonly collectionOf: ReadonlyMap<string, string>
}

async function find(
  store: Store,
  plan: Plan,
  { caller, request }: Omit<Asked, 'signal'>,
): Promise<Found | undefined> {
  const { collections, vectors, hitsMax } = plan
  const indexes = collections.flatMap(({ source, target }) => [source, target ?? source])
  const models = new Map(indexes.map(({ id, model }) => [id, model]))
  if (request.mode === 'vector' && vectors.byQuery.every(({ size }) => size === 0)) {
    throw unavailable('The query cannot be turned into a vector just now.')
  }
  let fused: Fused = { kind: 'text', scored: [] }
  const found = await store.find({
    scope: { caller, filters: request.filters, collectionIds: collections.map(({ id }) => id) },
    questions: request.queries.map((query, index) => ({
      words: request.mode === 'vector' ? null : searchWords(query),
      vectors: vectors.byQuery[index] ?? new Map(),
    })),
    indexIds: new Set(models.keys()),
    hitsMax,
    choose(hits) {
      fused = fuse(hits, (indexId) => models.get(indexId) ?? '')
      const { scored } = plan.rerankModel === null ? aboveMin(fused, request.scoreMin) : fused
      return scored.slice(0, plan.rerankModel === null ? plan.wanted : hitsMax)
    },
  })
  if (found === undefined) return undefined
  const names = new Map(collections.map(({ id, name }) => [id, name]))
  const collectionOf = new Map(
    found.chosen.map(({ hit }) => [hit.chunkId, names.get(hit.collectionId) ?? '']),
  )
  return { fused: { ...fused, scored: found.chosen }, passages: found.passages, collectionOf }
}

async function order(
  deps: SearchDeps,
  given: { plan: Plan; found: Found; request: SearchRequest; signal: AbortSignal },
): Promise<Ordered & { failed: boolean }> {
  const { plan, found, request, signal } = given
  const fused = { kind: found.fused.kind, scored: found.fused.scored.map(plain) }
  if (plan.rerankModel === null) return { ...fused, failed: false }
  const reranked = await orderByReranker(deps, {
    model: plan.rerankModel,
    query: request.queries.join('\n'),
    passages: fused.scored.flatMap(({ chunkId }) => found.passages.get(chunkId) ?? []),
    signal,
  })
  const ordered: Ordered =
    reranked === undefined ? fused : { kind: 'rerank' as const, scored: reranked }
  const { kind, scored } = aboveMin(ordered, request.scoreMin)
  return { kind, scored: scored.slice(0, plan.wanted), failed: reranked === undefined }
}

function plain({ hit, score }: Fused['scored'][number]) {
  return { chunkId: hit.chunkId, score }
}

/** A score of ranks says how a passage stands among others, not how good it is. */
function aboveMin<T extends { readonly score: number }, K extends SearchAnswer['scoreKind']>(
  ordered: { readonly kind: K; readonly scored: readonly T[] },
  scoreMin: number | null,
): { readonly kind: K; readonly scored: readonly T[] } {
  if (scoreMin === null || ordered.kind === 'rrf' || ordered.kind === 'text') return ordered
  return { ...ordered, scored: ordered.scored.filter(({ score }) => score >= scoreMin) }
}

function answerOf(given: {
  plan: Plan
  request: SearchRequest
  found: Found
  ordered: Ordered & { failed: boolean }
  startedAt: number
}): SearchAnswer {
  const { plan, request, found, ordered, startedAt } = given
  const results = ordered.scored.flatMap(({ chunkId, score }): SearchResult[] => {
    const passage = found.passages.get(chunkId)
    return passage === undefined ? [] : [resultOf(passage, score, found.collectionOf)]
  })
  return {
    results,
    mode: request.mode,
    scoreKind: ordered.kind,
    degraded: [
      ...(plan.vectors.hasFailed ? ['vector'] : []),
      ...(ordered.failed ? ['reranker'] : []),
    ],
    indexes: indexesOf(plan.collections),
    absent: plan.absent,
    tookMs: Math.round(performance.now() - startedAt),
  }
}

function resultOf(
  { chunkId, fileId, filename, attributes, text, ordinal, page, start, end }: Passage,
  score: number,
  collectionOf: ReadonlyMap<string, string>,
): SearchResult {
  return {
    fileId,
    filename,
    attributes,
    text,
    score,
    collection: collectionOf.get(chunkId) ?? '',
    chunk: { id: chunkId, index: ordinal, page, start, end },
  }
}

function indexesOf(collections: readonly SearchedCollection[]): SearchAnswer['indexes'] {
  const roles = new Map<string, SearchAnswer['indexes'][number]>()
  for (const { source, target } of collections) {
    const id = String(source.id)
    roles.set(id, { id, model: source.model, role: 'source' })
    if (target === null) continue
    const targetId = String(target.id)
    roles.set(targetId, { id: targetId, model: target.model, role: 'target' })
  }
  return [...roles.values()]
}

function unavailable(sentence: string, cause?: unknown): AppError {
  return new AppError('service_unavailable', sentence, {
    code: 'index_unavailable',
    retryAfterS: 1,
    cause,
  })
}
