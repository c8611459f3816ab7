import type { Transaction } from '#db/client.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Jobs, RunningJob } from '#jobs/jobs.ts'
import { AppError, type ErrorKind, toAppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import { repeat } from '#lib/repeat.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import type { DocumentText } from '#retrieval/extraction/document-text.ts'
import type { ExtractedText, Extraction } from '#retrieval/extraction/extraction.ts'
import { type UnreadableCode, UnreadableFile } from '#retrieval/extraction/unreadable.ts'
import type { Chunk, ChunkIndex, EmbeddedChunk } from '#retrieval/index/chunk.ts'
import { splitLimitsOf } from '#retrieval/index/parts.ts'
import { textHash } from '#retrieval/index/store.ts'
import { type ChunkTables, requireVectorDims } from '#retrieval/index/tables.ts'
import type { Storage } from '#storage/storage.ts'
import type { Log } from '#telemetry/log.ts'
import { splitText } from './split.ts'
import {
  createIngestStore,
  type IngestDatabase,
  type IngestFailure,
  type IngestOutcome,
  type IngestSource,
  type IngestTask,
} from './store.ts'
import { titleOf } from './title.ts'

export type IngestDeps = {
  database: IngestDatabase
  jobs: Pick<Jobs, 'add' | 'process'>
  storage: Pick<Storage, 'read'>
  embedders: Embedders
  chunkTables: Pick<ChunkTables, 'find' | 'replace' | 'textHashes'>
  extraction: Extraction
  log: Pick<Log, 'info' | 'warn'>
  now: () => Date
}

const queue = 'ingest'
/** Extraction has its own limit; these mostly wait for an embedding model. */
const concurrentFilesMax = 12
/** Of one owner in one index, so that a slow embedding model or a bulk upload leaves slots to others. */
const concurrentLaneFilesMax = 3
/** With backoff, an upstream may be unreachable for an hour. */
const attemptsMax = 15
/** A file that changes during every restart is retried later. */
const restartsMax = 3
/** Texts per embedding call, at most; between calls the event loop runs other work. */
const batchTextsMax = 64
/**
 * Text of passages per transaction. The embedded database has one connection, so that readers wait for
 * the transaction; it takes about 50 ms.
 */
const writeCharsMax = 32_768
const sweepIntervalMs = 600_000

/** Files without text are skipped rather than failed. */
const skippedCodes: ReadonlySet<UnreadableCode> = new Set(['no_text', 'unsupported_file'])

/** Errors of the request or the model that a retry cannot resolve. */
const permanentKinds: ReadonlySet<ErrorKind> = new Set([
  'invalid_request',
  'request_too_large',
  'context_length_exceeded',
  'unprocessable',
  'model_mode_mismatch',
  'upstream_invalid_answer',
])

type IngestRun = {
  readonly task: IngestTask
  readonly source: IngestSource
  readonly index: ChunkIndex
}

export type Ingest = ReturnType<typeof createIngest>

/** Reads, splits and embeds files, and stores their passages in indexes. */
export function createIngest(deps: IngestDeps) {
  const { chunkTables, embedders, extraction, storage, jobs, log } = deps
  const store = createIngestStore(deps.database, deps)

  /** Ingests a file if the index needs it. Throws errors that a retry may resolve. */
  async function ingestFile(task: IngestTask, signal: AbortSignal): Promise<void> {
    for (let restart = 0; restart <= restartsMax; restart++) {
      const source = await store.begin(task)
      const index = source && (await chunkTables.find(task.indexId))
      if (source === undefined || index === undefined) return
      const run = { task, source, index }
      const outcome = await ingestContent(run, signal).catch((error: unknown) => {
        signal.throwIfAborted()
        return recordFailure(run, error)
      })
      if (outcome !== 'changed') return
    }
    throw new AppError('conflict', 'The file changes faster than it can be processed.')
  }

  /** Each step may be the last one of this process. */
  async function ingestContent(run: IngestRun, signal: AbortSignal): Promise<IngestOutcome> {
    const { task, source, index } = run
    const document = await readText(source, signal)
    signal.throwIfAborted()
    await store.setStage(task, 'splitting')
    const chunks = await split(document, index, signal)
    await store.setStage(task, 'embedding')
    const kept = source.attempts > 1 ? await chunkTables.textHashes(index.id, task.fileId) : null
    const missing = chunks.filter((chunk) => kept?.get(chunk.ordinal) !== textHash(chunk))
    const writing = createWriting(run, chunks.length)
    try {
      for await (const embedded of embed(index, missing, { title: titleOf(source.name), signal })) {
        const outcome = await writing.add(embedded)
        if (outcome !== 'settled') return outcome
      }
    } catch (error) {
      // The next attempt continues here. Former content is not mixed with a small part of the new one.
      if (!signal.aborted && !source.isSearchable) await writing.flush()
      throw error
    }
    await store.setStage(task, 'indexing')
    const { warnings } = document
    const content = { sha256: source.sha256, chunks: chunks.length, warnings }
    return store.complete(task, content, writing.writeRest)
  }

  /**
   * Stores passages in short transactions. Searches do not find a new file before it is complete; of a
   * long changed file they find former and new passages meanwhile.
   */
  function createWriting({ task, source, index }: IngestRun, count: number) {
    let unwritten: EmbeddedChunk[] = []
    let chars = 0
    const writeRest = (transaction: Transaction) =>
      chunkTables.replace(transaction, index, task.fileId, unwritten, count)
    const flush = async () => {
      const outcome = await store.write(task, source.sha256, writeRest)
      unwritten = []
      chars = 0
      return outcome
    }
    return {
      writeRest,
      flush,
      async add(embedded: readonly EmbeddedChunk[]): Promise<IngestOutcome> {
        for (const chunk of embedded) {
          unwritten.push(chunk)
          chars += chunk.text.length
          if (chars < writeCharsMax) continue
          const outcome = await flush()
          if (outcome !== 'settled') return outcome
        }
        return 'settled'
      },
    }
  }

  async function readText(source: IngestSource, signal: AbortSignal): Promise<ExtractedText> {
    const extractor = extraction.extractorOf(source)
    const cached = await store.findText(source.sha256, extractor)
    if (cached !== undefined) return cached
    const text = await extraction.extract(source, () => storage.read(source.sha256), signal)
    await store.cacheText(source.sha256, extractor, text)
    return text
  }

  async function* embed(
    index: ChunkIndex,
    chunks: readonly Chunk[],
    { title, signal }: { title: string; signal: AbortSignal },
  ) {
    const context = createBackgroundContext(signal)
    const embedder = await embedders.find(index.model, context.principal)
    let start = 0
    while (start < chunks.length) {
      const textsMax = Math.min(batchTextsMax, embedder.textsMax?.() ?? batchTextsMax)
      const batch = chunks.slice(start, start + textsMax)
      start += batch.length
      const texts = batch.map(({ text }) => text)
      const { vectors } = await embedder.embed(texts, { purpose: 'passage', title, context })
      if (vectors.length !== batch.length) {
        throw new AppError(
          'upstream_invalid_answer',
          `"${index.model}" returned ${vectors.length} vectors for ${batch.length} passages.`,
        )
      }
      requireVectorDims(index, vectors)
      yield batch.flatMap((chunk, position) => {
        const vector = vectors[position]
        return vector === undefined ? [] : [{ ...chunk, vector }]
      })
      await yieldToEventLoop(signal)
    }
  }

  /** Rethrows errors that a retry may resolve. */
  async function recordFailure({ task, source, index }: IngestRun, error: unknown) {
    const failure = permanentFailure(error)
    if (failure === null) {
      await store.setWaiting(task, failureOf(error))
      throw error
    }
    const { fileId: file_id, indexId: index_id } = task
    log.info('file ingest failed', { file_id, index_id, code: failure.code, error })
    return store.fail(task, { sha256: source.sha256, failure }, deleteChunksOf(index, task))
  }

  const deleteChunksOf =
    (index: ChunkIndex, { fileId }: IngestTask) =>
    (transaction: Transaction) =>
      chunkTables.replace(transaction, index, fileId, [])

  /** Records the error of the last attempt. */
  async function failFile(task: IngestTask, error: unknown): Promise<void> {
    const index = await chunkTables.find(task.indexId)
    if (index === undefined) return
    const failure = failureOf(error)
    await store.fail(task, { sha256: null, failure }, deleteChunksOf(index, task))
  }

  jobs.process(queue, {
    concurrencyMax: concurrentFilesMax,
    laneJobsMax: concurrentLaneFilesMax,
    attemptsMax,
    run: ({ payload, signal }: RunningJob) => ingestFile(readTask(payload), signal),
    onFailed: ({ payload }, error) => failFile(readTask(payload), error),
  })
  const sweep = repeat(store.deleteUnusedTexts, {
    everyMs: sweepIntervalMs,
    log,
    failed: 'cleanup of extracted texts failed',
  })

  return {
    ingestFile,
    failFile,
    /**
     * Ingests a file again in all of its indexes, starting with its content; returns their number.
     * Does not check rights. Throws `conflict` (`already_processing`).
     */
    async reprocess(fileId: string): Promise<number> {
      const tasks = await store.restart(fileId, (transaction, task) => {
        const { fileId, indexId } = task
        const lane = `${task.ownerId}:${indexId}`
        return jobs.add(transaction, {
          queue,
          key: `${fileId}:${indexId}`,
          lane,
          payload: { fileId, indexId },
        })
      })
      if (tasks !== null) return tasks.length
      throw new AppError('conflict', 'The file is being processed.', { code: 'already_processing' })
    },
    close: sweep.stop,
  }
}

async function split(document: DocumentText, index: ChunkIndex, signal: AbortSignal) {
  const chunks: Chunk[] = []
  const limits = splitLimitsOf(index)
  for (const chunk of splitText(document, limits)) {
    chunks.push(chunk)
    if (chunks.length % batchTextsMax === 0) await yieldToEventLoop(signal)
  }
  return chunks
}

async function yieldToEventLoop(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve))
  signal.throwIfAborted()
}

/** Null if a retry may succeed. */
function permanentFailure(error: unknown): IngestFailure | null {
  if (error instanceof UnreadableFile) {
    const { code, message, warnings } = error
    return { state: skippedCodes.has(code) ? 'skipped' : 'failed', code, message, warnings }
  }
  return error instanceof AppError && permanentKinds.has(error.kind) ? failureOf(error) : null
}

/** With a message that callers may read. */
function failureOf(error: unknown): IngestFailure {
  const { wireCode, message } = toAppError(error)
  return { state: 'failed', code: wireCode, message, warnings: [] }
}

function readTask(payload: unknown): IngestTask {
  const { fileId, indexId } = asRecord(payload)
  return { fileId: String(fileId), indexId: Number(indexId) }
}
