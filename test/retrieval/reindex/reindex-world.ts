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
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Collections } from '#retrieval/collections/collections.ts'
import { createCollections } from '#retrieval/collections/create-collections.ts'
import { UnreadableFile } from '#retrieval/extraction/unreadable.ts'
import { createChunkTables } from '#retrieval/index/tables.ts'
import { createIngest } from '#retrieval/ingest/ingest.ts'
import { createReindexes } from '#retrieval/reindex/create-reindexes.ts'
import { isEnded, type Reindex, type Reindexes } from '#retrieval/reindex/reindex.ts'
import { createSearch } from '#retrieval/search/create-search.ts'
import type { Search } from '#retrieval/search/search.ts'
import { createDiskStorage } from '#storage/disk.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { fixedSettings } from '#test/support/fixed-settings.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { mortalDatabase } from './mortal-database.ts'

/** Files, collections, search and reindexes, worked on by any number of processes. */
export type ReindexWorld = {
  readonly database: TestDatabase
  readonly files: Files
  readonly collections: Collections
  readonly search: Search
  /** Models by their names; one that is missing is `model_not_found`. */
  readonly embedders: Map<string, Embedder>
  /** Of a process that brings no files and takes nothing on. */
  readonly reindexes: Reindexes
  /** Another process that does the work. */
  start(): Promise<WorkingProcess>
  collection(name: string): Promise<void>
  /** A collection with so many files that are found by `common` and `number0`, `number1` …; gives their ids. */
  filled(name: string, count: number): Promise<string[]>
  upload(name: string, text: string, collections: readonly string[]): Promise<string>
  replace(fileId: string, text: string): Promise<void>
  /** Begins a reindex; gives its id. */
  begin(embeddingModel: string, collections?: readonly string[]): Promise<string>
  /** What a search finds, as `file id: text`. */
  found(
    collection: string,
    query: string,
    mode?: 'hybrid' | 'vector' | 'keyword',
  ): Promise<string[]>
  until(id: string, status: Reindex['status']): Promise<Reindex>
  /** Once no upload waits any more. */
  settled(): Promise<void>
  close(): Promise<void>
}

export type WorkingProcess = {
  /** Ends in the middle of whatever it does: nothing is given back or written down any more. */
  crash(): void
  close(): Promise<void>
}

export const ann: RequestPrincipal = {
  userId: '00000000-0000-8000-8000-00000000000a',
  groups: ['users'],
}

/** A text with it cannot be read. */
export const unreadable = 'UNREADABLE'

/** A process that has died is noticed soon. */
const jobTimes: Partial<JobTimings> = { leaseMs: 600, pollMs: 40, closeWaitMaxMs: 2_000 }

export async function startReindexWorld(
  options: { warmHours?: number; now?: () => Date } = {},
): Promise<ReindexWorld> {
  const now = options.now ?? (() => new Date())
  const config = loadConfig({})
  const database = await openTestDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-reindex-'))
  const storage = await createDiskStorage({ folder, now })
  const known = new Map(['small', 'large', 'local-hash'].map((name) => [name, hashOf(name)]))
  const embedders = {
    async find(model: string): Promise<Embedder> {
      const found = known.get(model)
      if (found !== undefined) return found
      if (model === 'chatty')
        throw new AppError('model_mode_mismatch', `"${model}" is a chat model.`)
      throw new AppError('model_not_found', `There is no model "${model}".`)
    },
  }
  const settings = () => ({
    embeddingModel: 'local-hash',
    retrievalK: 3,
    rerankTopN: null,
    rerankModel: null,
  })
  const warm = { warmHours: options.warmHours ?? 24 }
  const running = new Set<WorkingProcess>()

  /** One process: `isIdle`, where it shall take nothing up. */
  async function open(place: TestDatabase | ReturnType<typeof mortalDatabase>, isIdle: boolean) {
    const jobs = await createJobs({ database: place, log: quietLog, timings: jobTimes })
    const taking = isIdle ? { ...jobs, work() {} } : jobs
    const shared = { database: place, jobs: taking, embedders, now, log: quietLog }
    const chunkTables = createChunkTables(shared)
    const ingest = createIngest({ ...shared, storage, chunkTables, extraction: plainReading })
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

  const desk = await open(database, true)
  const { collections, reindexes } = desk
  const files = createFiles({
    database,
    storage,
    settings: fixedSettings(config),
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

  const world: ReindexWorld = {
    database,
    files,
    collections,
    search,
    embedders: known,
    reindexes,
    async start() {
      const mortal = mortalDatabase(database)
      const { close } = await open(mortal, false)
      const process: WorkingProcess = {
        crash() {
          mortal.kill()
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
      await collections.create(ann, { ...plainCollection, name })
    },
    async filled(name, count) {
      await world.collection(name)
      const ids: string[] = []
      for (let at = 0; at < count; at++) {
        ids.push(await world.upload(`${name}-${at}.txt`, numberedText(at), [name]))
      }
      await world.settled()
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
        expiresAt: null,
        onConflict: 'fail',
      })
      return id
    },
    async replace(fileId, text) {
      const content = { content: await contentOf(text), mimeType: 'text/plain' }
      await files.replaceContent(ann, fileId, content, () => {})
    },
    async begin(embeddingModel, named) {
      const wish = { embeddingModel, chunking: null, collections: named ?? null }
      return (await reindexes.start(ann.userId, wish, AbortSignal.timeout(5_000))).id
    },
    async found(collection, query, mode = 'hybrid') {
      const asked = { collections: [collection], queries: [query], filters: [], topK: 50, mode }
      const rest = { scoreMin: null, rerank: null }
      const { results } = await search(ann, { ...asked, ...rest }, AbortSignal.timeout(20_000))
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
      await desk.close()
      await database.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return world
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

/** Reading in a process of its own is shown elsewhere; here it would take most of the time. */
const plainReading = {
  extractorOf: () => 'plain',
  async extract(_file: unknown, open: () => Promise<ReadableStream<Uint8Array>>) {
    const text = await new Response(await open()).text()
    if (text === '') throw new UnreadableFile('no_text')
    if (text.includes(unreadable)) throw new UnreadableFile('encrypted')
    return { text, pages: null }
  },
}

const dimsOf: Readonly<Record<string, number>> = { small: 64, large: 128 }

function hashOf(model: string): Embedder {
  const plain = createLocalHashEmbedder()
  const dims = dimsOf[model]
  const shorter = dims === undefined ? {} : { dims }
  return { model, embed: (texts, how) => plain.embed(texts, { ...how, ...shorter }) }
}
