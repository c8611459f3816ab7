import type { Embedders } from '#embedding/embedder.ts'
import type { Jobs, RunningJob, Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import { repeat } from '#lib/repeat.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import type { DocumentText } from '#retrieval/extraction/document-text.ts'
import type { Extraction } from '#retrieval/extraction/extraction.ts'
import type { Chunk, ChunkIndex, ChunkTables, EmbeddedChunk } from '#retrieval/index/chunk.ts'
import type { Storage } from '#storage/storage.ts'
import type { Log } from '#telemetry/log.ts'
import { failureOf, lastingFailure } from './judge.ts'
import { splitText } from './split.ts'
import {
  createIngestStore,
  type IngestDatabase,
  type IngestSource,
  type IngestStore,
  type IngestTask,
  type Settled,
} from './store.ts'

/** Brings files into indexes: reads, splits and embeds them, and puts their passages there. */
export type Ingest = {
  /** Brings one file into one index, if it is wanted there; throws what another try may mend. */
  bring(task: IngestTask, signal: AbortSignal): Promise<void>
  /** After the last try. */
  giveUp(task: IngestTask, error: unknown): Promise<void>
  /**
   * Does again what is not under way, from the content of the file on, in every index that it is in;
   * whoever asks has seen to it that the caller may. Says in how many indexes. Throws `conflict` of
   * code `already_processing`.
   */
  reprocess(fileId: string): Promise<number>
  close(): Promise<void>
}

export type IngestDeps = {
  database: IngestDatabase
  jobs: Pick<Jobs, 'add' | 'process'>
  storage: Pick<Storage, 'read'>
  embedders: Embedders
  chunkTables: Pick<ChunkTables, 'find' | 'replace'>
  extraction: Extraction
  log: Pick<Log, 'info' | 'warn'>
  now: () => Date
}

const queue = 'ingest'
/** Reading is limited by itself; this is mostly how many wait for an embedding model. */
const atOnceMax = 4
/** With the pauses between them, an upstream may be away for an hour. */
const attemptsMax = 15
/** A file that changes faster than it can be read waits for its turn. */
const restartsMax = 3
/** What is embedded in one go, so that a long file holds nobody up for long. */
const batchTextsMax = 64
const sweepEveryMs = 600_000

export function createIngest(deps: IngestDeps): Ingest {
  const { chunkTables, jobs, log } = deps
  const store = createIngestStore(deps.database, deps)
  const takeSteps = createSteps(deps, store)

  async function bring(task: IngestTask, signal: AbortSignal): Promise<void> {
    for (let start = 0; start <= restartsMax; start++) {
      const source = await store.begin(task)
      const index = source && (await chunkTables.find(task.indexId))
      if (source === undefined || index === undefined) return
      const outcome = await takeSteps({ task, source, index }, signal).catch((error: unknown) =>
        settleFailure({ task, source, index }, error, signal),
      )
      if (outcome !== 'changed') return
    }
    throw new AppError('conflict', 'The file changes faster than it can be read.')
  }

  /** Rethrows what another try may mend. */
  async function settleFailure(work: IngestWork, error: unknown, signal: AbortSignal) {
    signal.throwIfAborted()
    const { task, source, index } = work
    const failure = lastingFailure(error)
    if (failure === null) {
      await store.wait(task, failureOf(error))
      throw error
    }
    const said = { file_id: task.fileId, index_id: task.indexId, code: failure.code }
    log.info('a file could not be brought into an index', { ...said, error })
    return store.failed(task, { sha256: source.sha256, failure }, emptied(index, task))
  }

  const emptied =
    (index: ChunkIndex, { fileId }: IngestTask) =>
    (transaction: Transaction) =>
      chunkTables.replace(transaction, index, fileId, [])

  async function giveUp(task: IngestTask, error: unknown): Promise<void> {
    const index = await chunkTables.find(task.indexId)
    if (index === undefined) return
    const failure = failureOf(error)
    await store.failed(task, { sha256: null, failure }, emptied(index, task))
  }

  jobs.process(queue, {
    concurrencyMax: atOnceMax,
    attemptsMax,
    run: ({ payload, signal }: RunningJob) => bring(readTask(payload), signal),
    onFailed: ({ payload }, error) => giveUp(readTask(payload), error),
  })
  const sweeping = repeat(store.dropTexts, {
    everyMs: sweepEveryMs,
    log,
    failed: 'texts of deleted files cannot be dropped',
  })

  return {
    bring,
    giveUp,
    async reprocess(fileId) {
      const again = await store.again(fileId, (transaction, task) =>
        jobs.add(transaction, { queue, key: `${task.fileId}:${task.indexId}`, payload: task }),
      )
      if (again !== null) return again.length
      throw new AppError('conflict', 'The file is being processed.', { code: 'already_processing' })
    },
    close: sweeping.stop,
  }
}

type IngestWork = {
  readonly task: IngestTask
  readonly source: IngestSource
  readonly index: ChunkIndex
}

/** The way of a file into an index. Each step may be the last one of this process. */
function createSteps(deps: IngestDeps, store: IngestStore) {
  const { chunkTables, embedders, extraction, storage } = deps

  async function read(source: IngestSource, signal: AbortSignal): Promise<DocumentText> {
    const extractor = extraction.extractorOf(source)
    const known = await store.findText(source.sha256, extractor)
    if (known !== undefined) return known
    const text = await extraction.extract(source, () => storage.read(source.sha256), signal)
    await store.keepText(source.sha256, extractor, text)
    return text
  }

  async function embed(index: ChunkIndex, chunks: readonly Chunk[], signal: AbortSignal) {
    const embedder = await embedders.find(index.model)
    const embedded: EmbeddedChunk[] = []
    const context = createBackgroundContext(signal)
    for (let at = 0; at < chunks.length; at += batchTextsMax) {
      const batch = chunks.slice(at, at + batchTextsMax)
      const texts = batch.map(({ text }) => text)
      const { vectors } = await embedder.embed(texts, { purpose: 'passage', context })
      requireVectors(index, vectors, batch.length)
      batch.forEach((chunk, place) => {
        const vector = vectors[place]
        if (vector !== undefined) embedded.push({ ...chunk, vector })
      })
      await letOthersRun(signal)
    }
    return embedded
  }

  return async ({ task, source, index }: IngestWork, signal: AbortSignal): Promise<Settled> => {
    const document = await read(source, signal)
    signal.throwIfAborted()
    await store.enter(task, 'splitting')
    const chunks = await split(document, index, signal)
    await store.enter(task, 'embedding')
    const embedded = await embed(index, chunks, signal)
    await store.enter(task, 'indexing')
    const facts = { sha256: source.sha256, chunks: embedded.length }
    return store.done(task, facts, (transaction) =>
      chunkTables.replace(transaction, index, task.fileId, embedded),
    )
  }
}

async function split(document: DocumentText, index: ChunkIndex, signal: AbortSignal) {
  const chunks: Chunk[] = []
  const splitting = {
    tokensMax: index.chunkTokensMax,
    overlapTokens: index.chunkOverlapTokens,
  }
  for (const chunk of splitText(document, splitting)) {
    chunks.push(chunk)
    if (chunks.length % batchTextsMax === 0) await letOthersRun(signal)
  }
  return chunks
}

/** An index has vectors of one length, that of the model when the index was made. */
function requireVectors(index: ChunkIndex, vectors: readonly Float32Array[], count: number): void {
  if (vectors.length !== count) {
    throw new AppError(
      'upstream_invalid_answer',
      `"${index.model}" gave ${vectors.length} vectors for ${count} passages.`,
    )
  }
  const wrong = vectors.find((vector) => vector.length !== index.dims)
  if (wrong === undefined) return
  throw new AppError(
    'upstream_invalid_answer',
    `"${index.model}" gave a vector of ${wrong.length} numbers, not ${index.dims} as before.`,
    { code: 'wrong_dimensions' },
  )
}

async function letOthersRun(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve))
  signal.throwIfAborted()
}

function readTask(payload: unknown): IngestTask {
  const { fileId, indexId } = asRecord(payload)
  return { fileId: String(fileId), indexId: Number(indexId) }
}
