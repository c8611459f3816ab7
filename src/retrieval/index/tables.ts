import type { Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import type { ChunkIndex, ChunkTables, EmbeddedChunk, IndexSpec } from './chunk.ts'
import { chunkStore, dimsMax, graphDimsMax, type IndexDatabase, replaceChunks } from './store.ts'

export type ChunkTablesDeps = {
  database: IndexDatabase
  jobs: Pick<Jobs, 'add' | 'process'>
  now: () => Date
}

const graphQueue = 'chunk-graph'
/**
 * With fewer passages all of them are compared, which takes some ten milliseconds and loses none.
 * The embedded engine never has a graph: while it builds one it answers nobody, and with one each
 * passage takes it a hundred times as long to add.
 */
const graphFromChunks = 10_000
/** After so many new passages an index is looked at again. */
const chunksPerLook = 1_000
/** An upload of many files is one look. */
const lookAfterMs = 10_000
const buildAttemptsMax = 5

/** The tables of passages. On a server it also takes up the work of making large ones fast. */
export function createChunkTables({ database, jobs, now }: ChunkTablesDeps): ChunkTables {
  const store = chunkStore(database, { now })
  const growth = createGrowth()
  if (database.kind === 'postgres') jobs.process(graphQueue, graphWorker(store))
  return {
    async provide(spec) {
      checkDims(spec)
      return (await store.findActive(spec)) ?? store.provide(spec)
    },
    async create(spec, transaction) {
      checkDims(spec)
      return store.create(spec, transaction)
    },
    find: store.find,
    async replace(transaction, index, fileId, chunks) {
      checkVectors(index, chunks)
      await replaceChunks(transaction, { index, fileId, chunks, kind: database.kind })
      if (database.kind !== 'postgres' || index.dims > graphDimsMax) return
      if (!growth.isLookDue(index.id, chunks.length)) return
      const runAt = new Date(now().getTime() + lookAfterMs)
      const payload = { indexId: index.id }
      await jobs.add(transaction, { queue: graphQueue, key: String(index.id), payload, runAt })
    },
    drop: store.drop,
  }
}

/** Counts what this process adds to each index; the first addition makes it look, too. */
function createGrowth() {
  const sinceLook = new Map<number, number>()
  return {
    isLookDue(indexId: number, added: number): boolean {
      const grown = (sinceLook.get(indexId) ?? chunksPerLook) + added
      sinceLook.set(indexId, grown >= chunksPerLook ? 0 : grown)
      return grown >= chunksPerLook
    },
  }
}

function graphWorker(store: ReturnType<typeof chunkStore>): Parameters<Jobs['process']>[1] {
  return {
    // A build takes what memory and processors a server gives to maintenance.
    concurrencyMax: 1,
    attemptsMax: buildAttemptsMax,
    async run({ payload }) {
      const id = Number(asRecord(payload)['indexId'])
      if ((await store.find(id)) === undefined) return
      if (await store.hasMoreThan(id, graphFromChunks)) await store.buildGraph(id)
    },
    // Without it a search is slower, and the next growth tries again.
    onFailed: async () => {},
  }
}

/** Throws `unprocessable` for vectors that are too long to be kept. */
export function checkDims({ model, dims }: IndexSpec): void {
  if (Number.isSafeInteger(dims) && dims >= 1 && dims <= dimsMax) return
  throw new AppError(
    'unprocessable',
    `The vectors of "${model}" have ${dims} numbers; at most ${dimsMax} can be kept.`,
    { param: 'embedding_model', code: 'too_many_dimensions' },
  )
}

function checkVectors(index: ChunkIndex, chunks: readonly EmbeddedChunk[]): void {
  const wrong = chunks.find(({ vector }) => vector.length !== index.dims)
  if (wrong === undefined) return
  throw new AppError(
    'upstream_invalid_answer',
    `"${index.model}" gave a vector of ${wrong.vector.length} numbers, not ${index.dims} as before.`,
  )
}
