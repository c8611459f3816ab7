import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { loadConfig } from '#config/load.ts'
import type { Embedder } from '#embedding/embedder.ts'
import { createLocalHashEmbedder } from '#embedding/local-hash.ts'
import { createFiles, type Files } from '#files/tree.ts'
import { createJobs, type JobTimings } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { createBackgroundContext, type RequestPrincipal } from '#lib/request-context.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import { createCollections } from '#retrieval/collections/create-collections.ts'
import { UnreadableFile } from '#retrieval/extraction/unreadable.ts'
import { createChunkTables } from '#retrieval/index/tables.ts'
import { createIngest } from '#retrieval/ingest/ingest.ts'
import { createReindexes, type Reindexes } from '#retrieval/reindex/create-reindexes.ts'
import type { Reindex } from '#retrieval/reindex/progress.ts'
import type { ReindexAction } from '#retrieval/reindex/reindex.ts'
import { isEnded } from '#retrieval/reindex/reindex.ts'
import { createSearch } from '#retrieval/search/create-search.ts'
import type { Search } from '#retrieval/search/search.ts'
import { createDiskStorage } from '#storage/disk.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { fixedSettings } from '#test/support/fixed-settings.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { failingDatabase } from './failing-database.ts'

/** Files, collections, search and reindexes, with any number of worker processes. */
export type ReindexHarness = {
  readonly database: TestDatabase
  readonly files: Files
  readonly collections: Collections
  readonly search: Search
  /** By name; others are `model_not_found`. */
  readonly embedders: Map<string, Embedder>
  /** Of a process that runs no jobs. */
  readonly reindexes: Reindexes
  /** Starts a process that runs jobs. */
  start(): Promise<WorkerProcess>
  collection(name: string): Promise<void>
  /** Creates a collection with files that contain `common` and `number0`, `number1` …; returns their ids. */
  createFilled(name: string, count: number): Promise<string[]>
  upload(name: string, text: string, collections: readonly string[]): Promise<string>
  replace(fileId: string, text: string): Promise<void>
  /** Returns the id of the reindex. */
  startReindex(embeddingModel: string, collections?: readonly string[]): Promise<string>
  act(id: string, action: ReindexAction): Promise<Reindex>
  /** Search results as `file id: text`. */
  found(
    collection: string,
    query: string,
    mode?: 'hybrid' | 'vector' | 'keyword',
  ): Promise<string[]>
  until(id: string, status: Reindex['status']): Promise<Reindex>
  /** Resolves when all uploads are ingested. */
  settled(): Promise<void>
  close(): Promise<void>
}

export type WorkerProcess = {
  /** Stops without releasing or writing anything. */
  crash(): void
  close(): Promise<void>
}

export const ann: RequestPrincipal = {
  userId: '00000000-0000-8000-8000-00000000000a',
  groups: ['users'],
}

/** The context of a request by Ann. */
export function annContext() {
  return createBackgroundContext(new AbortController().signal, ann)
}

/** Texts that contain it are unreadable. */
export const unreadable = 'UNREADABLE'

/** Short leases, so that crashes are detected soon. */
const jobTimes: Partial<JobTimings> = { leaseMs: 600, pollMs: 40, closeWaitMaxMs: 2_000 }

export async function startReindexHarness(
  options: { warmHours?: number; now?: () => Date } = {},
): Promise<ReindexHarness> {
  const now = options.now ?? (() => new Date())
  const config = loadConfig({})
  const database = await openTestDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-reindex-'))
  const storage = await createDiskStorage({ folder, now })
  const known = new Map(['small', 'large', 'local-hash'].map((name) => [name, hashEmbedder(name)]))
  known.set('local', hashEmbedder('local-hash'))
  const embedders = {
    async find(model: string): Promise<Embedder> {
      const found = known.get(model)
      if (found !== undefined) return found
      if (model === 'chatty')
        throw new AppError('model_mode_mismatch', `"${model}" is a chat model.`)
      throw new AppError('model_not_found', `There is no model "${model}".`)
    },
  }
  const settings = fixedSettings(config)
  const warm = { warmHours: options.warmHours ?? 24 }
  const running = new Set<WorkerProcess>()

  /** Opens a process; an idle one runs no jobs. */
  async function open(place: TestDatabase | ReturnType<typeof failingDatabase>, isIdle: boolean) {
    const jobs = await createJobs({ database: place, log: quietLog, timings: jobTimes })
    const usedJobs = isIdle ? { ...jobs, process: () => ({ stop() {} }) } : jobs
    const shared = { database: place, jobs: usedJobs, embedders, now, log: quietLog }
    const chunkTables = createChunkTables(shared)
    const ingest = createIngest({ ...shared, storage, chunkTables, extraction: plainExtraction })
    const collections = createCollections({
      ...shared,
      chunkTables,
      settings,
      limits: config.retrieval,
      usedByAgents: async () => false,
    })
    const intervals = { pollMs: 20, progressMs: 50 }
    const reindexes = await createReindexes({
      ...shared,
      chunkTables,
      ingest,
      intervals,
      settings: warm,
    })
    const close = async () => {
      await jobs.close()
      await ingest.close()
    }
    return { collections, reindexes, close }
  }

  const idleProcess = await open(database, true)
  const { collections, reindexes } = idleProcess
  const files = createFiles({
    database,
    storage,
    settings,
    limits: config.files,
    hooks: collections.fileHooks,
    now,
  })
  const search = createSearch({
    database,
    embedders,
    settings,
    log: quietLog,
    rerankers: { find: () => Promise.reject(new Error('there is none')) },
  })
  const contentOf = (text: string) =>
    storage.put(new Blob([text]).stream(), { bytesMax: 1_000_000 })

  const harness: ReindexHarness = {
    database,
    files,
    collections,
    search,
    embedders: known,
    reindexes,
    async start() {
      const failing = failingDatabase(database)
      const { close } = await open(failing, false)
      const process: WorkerProcess = {
        crash() {
          failing.kill()
          running.delete(process)
          void close().catch(() => {})
        },
        async close() {
          running.delete(process)
          await close()
        },
      }
      running.add(process)
      return process
    },
    async collection(name) {
      await collections.create(annContext(), { ...plainCollection, name })
    },
    async createFilled(name, count) {
      await harness.collection(name)
      const ids: string[] = []
      for (let at = 0; at < count; at++) {
        ids.push(await harness.upload(`${name}-${at}.txt`, numberedText(at), [name]))
      }
      await harness.settled()
      return ids
    },
    async upload(name, text, into) {
      const { id } = await files.create(ann, {
        name,
        folderId: null,
        content: await contentOf(text),
        mimeType: 'text/plain',
        attributes: {},
        purpose: 'user_data',
        collections: into,
        lifetimeS: null,
        onConflict: 'fail',
      })
      return id
    },
    async replace(fileId, text) {
      const content = { content: await contentOf(text), mimeType: 'text/plain' }
      await files.replaceContent(ann, fileId, content, () => {})
    },
    async startReindex(embeddingModel, named) {
      const params = { embeddingModel, chunking: null, collections: named ?? null }
      return (await reindexes.start(annContext(), params)).id
    },
    act: (id, action) => reindexes.act(annContext(), id, action),
    async found(collection, query, mode = 'hybrid') {
      const params = { collections: [collection], queries: [query], filters: [], topK: 50, mode }
      const rest = { scoreMin: null, rerank: null }
      const { results } = await search(annContext(), { ...params, ...rest })
      return results.map(({ fileId, text }) => `${fileId}: ${text}`)
    },
    async until(id, status) {
      let seen = await reindexes.find(id)
      await eventually(`the reindex is ${status}, last ${seen.status}`, async () => {
        seen = await reindexes.find(id)
        if (seen.status !== status && isEnded(seen.status)) throw new Error(`it is ${seen.status}`)
        return seen.status === status
      })
      return seen
    },
    settled: () =>
      eventually('no upload waits', async () => {
        const rows = await database.drizzle.execute(sql`
          select 1 from job where queue in ('ingest', 'follow-folder') limit 1`)
        return rows.length === 0
      }),
    async close() {
      await Promise.all([...running].map((process) => process.close()))
      await idleProcess.close()
      await database.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return harness
}

export function numberedText(number: number): string {
  return `common text of file number${number}`
}

const plainCollection = {
  title: null,
  description: null,
  metadata: {},
  accessMode: 'files' as const,
  chunking: null,
  embeddingModel: null,
  folderId: null,
}

/** Extraction in child processes has its own tests and would dominate the duration of these. */
const plainExtraction = {
  extractorOf: () => 'plain',
  async extract(_file: unknown, open: () => Promise<ReadableStream<Uint8Array>>) {
    const text = await new Response(await open()).text()
    if (text === '') throw new UnreadableFile('no_text')
    if (text.includes(unreadable)) throw new UnreadableFile('encrypted')
    return { text, pages: null, warnings: [], images: [] }
  },
}

const dimsOf: Readonly<Record<string, number>> = { small: 64, large: 128 }

function hashEmbedder(model: string): Embedder {
  const plain = createLocalHashEmbedder()
  const dims = dimsOf[model]
  const shorter = dims === undefined ? {} : { dims }
  return { model, embed: (texts, how) => plain.embed(texts, { ...how, ...shorter }) }
}
