import type { Transaction } from '#db/client.ts'
import type { JobHandler, Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import type { ChunkIndex, EmbeddedChunk, IndexSpec } from './chunk.ts'
import { chunkStore, dimsMax, graphDimsMax, type IndexDatabase, replaceChunks } from './store.ts'

const graphQueue = 'chunk-graph'
/**
 * Smaller indexes are scanned exactly within about 10 ms. The embedded engine never has a graph: it
 * blocks while it builds one, and insertions become a hundred times slower.
 */
const graphChunksMin = 10_000
/** Added chunks after which the size of an index is checked. */
const chunksPerCheck = 1_000
/** Delays the check, so that a bulk upload causes one. */
const checkDelayMs = 10_000
const buildAttemptsMax = 5

export type ChunkTables = ReturnType<typeof createChunkTables>

/** The tables of passages, one per index; on PostgreSQL with graphs of large ones. */
export function createChunkTables({
  database,
  jobs,
  now,
}: {
  database: IndexDatabase
  jobs: Pick<Jobs, 'add' | 'process'>
  now: () => Date
}) {
  const store = chunkStore(database, { now })
  /** By index: chunks that this process has added since the last check. */
  const addedSinceCheck = new Map<number, number>()
  if (database.kind === 'postgres') jobs.process(graphQueue, graphHandler(store))

  /** The first addition of a process is always due. */
  function isCheckDue(indexId: number, chunks: number): boolean {
    const added = (addedSinceCheck.get(indexId) ?? chunksPerCheck) + chunks
    const isDue = added >= chunksPerCheck
    addedSinceCheck.set(indexId, isDue ? 0 : added)
    return isDue
  }

  return {
    find: store.find,
    /** Deletes the index and its table. */
    drop: store.drop,
    /** Finds or creates the active index of this specification. */
    async provide(spec: IndexSpec): Promise<ChunkIndex> {
      requireDims(spec)
      return (await store.findActive(spec)) ?? store.provide(spec)
    },
    /** Creates an index for a reindex. */
    async create(spec: IndexSpec, transaction?: Transaction): Promise<ChunkIndex> {
      requireDims(spec)
      return store.create(spec, transaction)
    },
    textHashes: store.textHashes,
    /** Replaces the passages of a file, except others below the ordinal `keepBelow`. */
    async replace(
      transaction: Transaction,
      index: ChunkIndex,
      fileId: string,
      chunks: readonly EmbeddedChunk[],
      keepBelow = 0,
    ): Promise<void> {
      const vectors = chunks.map(({ vector }) => vector)
      requireVectorDims(index, vectors)
      await replaceChunks(transaction, { index, fileId, chunks, keepBelow, kind: database.kind })
      if (database.kind !== 'postgres' || index.dims > graphDimsMax) return
      if (!isCheckDue(index.id, chunks.length)) return
      const runAt = new Date(now().getTime() + checkDelayMs)
      const payload = { indexId: index.id }
      await jobs.add(transaction, { queue: graphQueue, key: String(index.id), payload, runAt })
    },
  }
}

function graphHandler(store: ReturnType<typeof chunkStore>): JobHandler {
  return {
    // A build uses the maintenance memory and workers of the server.
    concurrencyMax: 1,
    attemptsMax: buildAttemptsMax,
    async run({ payload }) {
      const id = Number(asRecord(payload)['indexId'])
      if ((await store.find(id)) === undefined) return
      if (await store.hasMoreThan(id, graphChunksMin)) await store.buildGraph(id)
    },
    // Searches are slower without a graph; further additions retry the build.
    onFailed: async () => {},
  }
}

/** Throws `too_many_dimensions` for vectors that cannot be stored. */
export function requireDims({ model, dims }: IndexSpec): void {
  if (Number.isSafeInteger(dims) && dims >= 1 && dims <= dimsMax) return
  throw new AppError(
    'unprocessable',
    `The vectors of "${model}" have ${dims} dimensions; the maximum is ${dimsMax}.`,
    { param: 'embedding_model', code: 'too_many_dimensions' },
  )
}

/** An unknown model, or one of another mode, is a fault of the request. */
export async function withModelErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const isWrongModel =
      error instanceof AppError && /^model_(not_found|mode_mismatch)$/.test(error.kind)
    if (!isWrongModel) throw error
    throw new AppError('unprocessable', error.message, {
      param: 'embedding_model',
      code: error.kind,
    })
  }
}

/** A model replaced under the same name may return other vectors than the index holds. */
export function requireVectorDims(
  { model, dims }: ChunkIndex,
  vectors: readonly Float32Array[],
): void {
  const wrong = vectors.find((vector) => vector.length !== dims)
  if (wrong === undefined) return
  throw new AppError(
    'upstream_invalid_answer',
    `"${model}" returned a vector of ${wrong.length} dimensions; the index has ${dims}.`,
    { code: 'wrong_dimensions' },
  )
}
