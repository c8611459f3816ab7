import { sql } from 'drizzle-orm'
import { loadConfig } from '#config/load.ts'
import type { Database } from '#db/client.ts'
import type { Embedder } from '#embedding/embedder.ts'
import { createLocalHashEmbedder } from '#embedding/local-hash.ts'
import { createFiles, type Files } from '#files/tree.ts'
import { createJobs, type Jobs, type JobTimings } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { createBackgroundContext, type RequestPrincipal } from '#lib/request-context.ts'
import { createCollections } from '#retrieval/collections/create-collections.ts'
import { createExtraction, type ExtractionLimits } from '#retrieval/extraction/extraction.ts'
import { type ChunkTables, createChunkTables } from '#retrieval/index/tables.ts'
import { createIngest, type Ingest, type IngestDeps } from '#retrieval/ingest/ingest.ts'
import { createDiskStorage } from '#storage/disk.ts'
import { eventually } from '#test/support/eventually.ts'
import { fixedSettings } from '#test/support/fixed-settings.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** One process with files, a collection named `docs`, and the ingest. */
export type IngestHarness = {
  readonly files: Files
  readonly ingest: Ingest
  readonly jobs: Jobs
  readonly tables: ChunkTables
  readonly embedders: Map<string, Embedder>
  /** Adds a file to the collection; returns its id. */
  upload(name: string, content: Uint8Array | string): Promise<string>
  replace(fileId: string, content: Uint8Array | string): Promise<void>
  /** The ingest state in the only index of the file. */
  state(fileId: string): Promise<FileState>
  passages(fileId: string): Promise<readonly Passage[]>
  /** Resolves when no job is left. */
  settled(): Promise<void>
  close(): Promise<void>
}

export type FileState = {
  readonly state: string
  readonly stage: string
  readonly chunks: number
  readonly attempts: number
  readonly error_code: string | null
  readonly error_message: string | null
  readonly warnings: string | null
}

type Passage = {
  readonly ordinal: number
  readonly text: string
  readonly page: number | null
  readonly start_char: number
  readonly end_char: number
}

export const ann: RequestPrincipal = {
  userId: '00000000-0000-8000-8000-00000000000a',
  groups: ['users'],
}

type HarnessOptions = {
  owner?: RequestPrincipal
  times?: Partial<JobTimings>
  limits?: Partial<ExtractionLimits>
  /** Wraps the dependencies of the ingest. */
  around?(deps: IngestDeps): IngestDeps
}

export async function startIngestHarness(
  database: Database,
  dataFolder: string,
  { owner = ann, times = {}, limits = {}, around = (deps) => deps }: HarnessOptions = {},
): Promise<IngestHarness> {
  const now = () => new Date()
  const config = loadConfig({})
  const jobs = await createJobs({ database, log: quietLog, timings: { pollMs: 50, ...times } })
  const storage = await createDiskStorage({ folder: `${dataFolder}/contents`, now })
  const tables = createChunkTables({ database, jobs, now })
  const localHash = createLocalHashEmbedder()
  const known = new Map<string, Embedder>([
    ['local', localHash],
    ['local-hash', localHash],
  ])
  const embedders = {
    async find(model: string) {
      const found = known.get(model)
      if (found === undefined) throw new AppError('model_not_found', `There is no "${model}".`)
      return found
    },
  }
  const ingest = createIngest(
    around({
      database,
      jobs,
      storage,
      embedders,
      chunkTables: tables,
      log: quietLog,
      now,
      extraction: createExtraction({
        limits: { ...config.retrieval, ...limits },
        log: quietLog,
      }),
    }),
  )
  const collections = createCollections({
    database,
    jobs,
    now,
    embedders,
    chunkTables: tables,
    settings: fixedSettings(config),
    limits: { ...config.retrieval, chunkTokensMax: 100, chunkOverlapTokens: 20 },
    usedByAgents: async () => false,
  })
  const files = createFiles({
    database,
    storage,
    settings: fixedSettings(config),
    limits: config.files,
    hooks: collections.fileHooks,
    now,
  })
  const put = (content: Uint8Array | string) =>
    storage.put(
      new Blob([typeof content === 'string' ? content : new Uint8Array(content)]).stream(),
      {
        bytesMax: 100_000_000,
      },
    )
  const context = createBackgroundContext(new AbortController().signal, owner)
  await collections.find(owner, 'docs').catch(() => collections.create(context, docs))

  return {
    files,
    ingest,
    jobs,
    tables,
    embedders: known,
    async upload(name, content) {
      const { id } = await files.create(owner, {
        name,
        folderId: null,
        content: await put(content),
        mimeType: '',
        attributes: {},
        purpose: 'user_data',
        collections: ['docs'],
        lifetimeS: null,
        onConflict: 'rename',
      })
      return id
    },
    async replace(fileId, content) {
      const kept = await put(content)
      await files.replaceContent(owner, fileId, { content: kept, mimeType: '' }, () => {})
    },
    state: (fileId) => stateOf(database, fileId),
    passages: (fileId) => passagesOf(database, fileId),
    settled: () =>
      eventually('no work is left', async () => {
        const left = sql`select 1 from job where queue = 'ingest' limit 1`
        return (await database.drizzle.execute(left)).length === 0
      }),
    async close() {
      await jobs.close()
      await ingest.close()
    },
  }
}

const docs = {
  name: 'docs',
  title: null,
  description: null,
  metadata: {},
  accessMode: 'files' as const,
  chunking: null,
  embeddingModel: null,
  folderId: null,
}

async function stateOf({ drizzle }: Database, fileId: string): Promise<FileState> {
  const [row] = await drizzle.execute<FileState>(sql`
    select state, stage, chunks, attempts, error_code, error_message, warnings from file_index
    where file_id = ${fileId}::uuid`)
  if (row === undefined) throw new Error('the file is in no index')
  return row
}

async function passagesOf({ drizzle }: Database, fileId: string): Promise<Passage[]> {
  return drizzle.execute<Passage>(sql`
    select ordinal, text, page, start_char, end_char from chunk_1
    where file_id = ${fileId}::uuid order by ordinal`)
}
