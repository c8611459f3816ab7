import { sql } from 'drizzle-orm'
import { Elysia } from 'elysia'
import OpenAI from 'openai'
import { mountEndpoints } from '#api/mount.ts'
import { createAudit } from '#audit/store.ts'
import { createAuth } from '#auth/auth.ts'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import type { Embedder } from '#embedding/embedder.ts'
import { createLocalHashEmbedder } from '#embedding/local-hash.ts'
import { requestLifecycle } from '#http/request-lifecycle.ts'
import { createJobs, type Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { asRecord } from '#lib/json.ts'
import type { Reranker } from '#rerank/reranker.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import { createCollections } from '#retrieval/collections/create-collections.ts'
import { collectionEndpoints, collectionShareEndpoints } from '#retrieval/collections/endpoints.ts'
import { type ChunkTables, createChunkTables } from '#retrieval/index/tables.ts'
import { createSearch } from '#retrieval/search/create-search.ts'
import { searchEndpoints } from '#retrieval/search/endpoints.ts'
import type { Search } from '#retrieval/search/search.ts'
import { vectorStoreEndpoints } from '#retrieval/vector-stores/endpoints.ts'
import type { ConfigValues } from '#settings/schema.ts'
import { eventually } from './eventually.ts'
import {
  type ApiResponse,
  type FileGateway,
  type Person,
  startFileGateway,
} from './file-gateway.ts'
import { fixedSettings } from './fixed-settings.ts'
import { makeRequestContext } from './generation.ts'
import { signWithSecret } from './identity-provider.ts'
import { quietLog, quietObserver } from './quiet-log.ts'

/** Files, collections, vector stores and search on a real port, with a plain ingest. */
export type RetrievalGateway = {
  readonly url: string
  /** Uploads and shares of the same files. */
  readonly files: FileGateway
  readonly collections: Collections
  readonly tables: ChunkTables
  readonly search: Search
  readonly jobs: Jobs
  readonly embedders: Map<string, Embedder>
  readonly rerankers: Map<string, Reranker>
  /** Ids of collections that agents use. */
  readonly usedCollections: Set<string>
  readonly settings: ConfigValues
  send(
    who: Person,
    path: string,
    options?: { method?: string; json?: unknown },
  ): Promise<ApiResponse>
  openai(who: Person): OpenAI
  /** Resolves when all added files are indexed. */
  settled(): Promise<void>
  /** Whether the ingest runs; initially true. */
  ingesting: boolean
  stop(): Promise<void>
}

const secret = 'another secret that only the tests know'
/** Texts that contain it fail the ingest. */
export const unreadable = 'UNREADABLE'

export async function startRetrievalGateway(
  database: Database,
  options: { retrieval?: Partial<Config['retrieval']> } = {},
): Promise<RetrievalGateway> {
  const loaded = loadConfig({ JWT_SECRET: secret, PORT: '0' })
  const config = { ...loaded, retrieval: { ...loaded.retrieval, ...options.retrieval } }
  const now = () => new Date()
  const auth = await createAuth({
    audit: createAudit({ database, now }),
    config,
    database,
    log: quietLog,
    now,
    fetch,
  })
  const jobs = await createJobs({ database, log: quietLog })
  const tables = createChunkTables({ database, jobs, now })
  const localHash = createLocalHashEmbedder()
  const embedders = new Map([
    ['local', localHash],
    ['local-hash', localHash],
  ])
  const rerankers = new Map<string, Reranker>()
  const usedCollections = new Set<string>()
  const settings = { ...fixedSettings(config).current(), retrieval_k: 3 }
  const collections = createCollections({
    database,
    jobs,
    now,
    embedders: byName(embedders),
    chunkTables: tables,
    settings: { current: () => settings },
    limits: config.retrieval,
    usedByAgents: async (id) => usedCollections.has(id),
  })
  const search = createSearch({
    database,
    log: quietLog,
    settings: { current: () => settings },
    embedders: byName(embedders),
    rerankers: byName(rerankers),
  })
  const files = await startFileGateway(database, { hooks: collections.fileHooks })
  const { shares } = files
  const services = { auth, collections, search, shares, config }
  const endpoints = [
    ...collectionEndpoints(services),
    ...collectionShareEndpoints(services),
    ...searchEndpoints(services),
    ...vectorStoreEndpoints(services),
  ]
  const app = new Elysia({ handler: { standardHostname: false } })
    .use(
      requestLifecycle({
        observer: quietObserver,
        newRequestId: () => newId('req_'),
        draining: () => false,
      }),
    )
    .use(mountEndpoints(endpoints, { auth, config }))
    .listen({ hostname: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${app.server?.port}`
  const gateway: RetrievalGateway = {
    url,
    files,
    collections,
    tables,
    search,
    jobs,
    embedders,
    rerankers,
    usedCollections,
    settings,
    ingesting: true,
    send: (who, path, how = {}) => sendTo(url + path, who, how),
    openai: (who) => new OpenAI({ baseURL: `${url}/v1`, apiKey: tokenOf(who), maxRetries: 0 }),
    settled: () => settled(database),
    async stop() {
      await jobs.close()
      await app.stop(true)
      await auth.close()
      await files.stop()
    },
  }
  jobs.process('ingest', ingestWorker(database, gateway))
  return gateway
}

function byName<T>(known: ReadonlyMap<string, T>): { find(model: string): Promise<T> } {
  return {
    async find(model) {
      const found = known.get(model)
      if (found !== undefined) return found
      throw new AppError('model_not_found', `There is no model "${model}".`)
    },
  }
}

/** Each line of a file is a passage. */
function ingestWorker(
  database: Database,
  gateway: RetrievalGateway,
): Parameters<Jobs['process']>[1] {
  return {
    concurrencyMax: 2,
    attemptsMax: 1_000,
    onFailed: async () => {},
    async run({ payload, signal }) {
      const { fileId, indexId } = asRecord(payload)
      if (!gateway.ingesting) throw new AppError('service_unavailable', 'Not now.')
      const index = await gateway.tables.find(Number(indexId))
      const [row] = await database.drizzle.execute<{ sha256: string }>(sql`
        select sha256 from file where node_id = ${String(fileId)}::uuid`)
      if (index === undefined || row === undefined) return
      const text = await new Response(await gateway.files.storage.read(row.sha256)).text()
      const lines = text.split('\n').filter((line) => line !== '')
      const state = text.includes(unreadable) ? 'failed' : 'done'
      const embedder = gateway.embedders.get(index.model)
      if (embedder === undefined) throw new Error(`no embedder ${index.model}`)
      const { vectors } = await embedder.embed(lines, {
        purpose: 'passage',
        context: makeRequestContext(signal),
      })
      let start = 0
      const chunks = lines.map((line, ordinal) => {
        const chunk = {
          ordinal,
          text: line,
          page: 1,
          start,
          end: start + line.length,
          vector: vectors[ordinal] ?? new Float32Array(index.dims),
        }
        start += line.length + 1
        return chunk
      })
      await database.drizzle.transaction(async (transaction) => {
        await gateway.tables.replace(transaction, index, String(fileId), chunks)
        await transaction.execute(sql`
          update file_index set state = ${state}, sha256 = ${row.sha256}, chunks = ${chunks.length},
            error_code = ${state === 'failed' ? 'unreadable' : null}
          where file_id = ${String(fileId)}::uuid and index_id = ${index.id}`)
      })
    },
  }
}

function settled({ drizzle }: Database): Promise<void> {
  return eventually('everything is in its index', async () => {
    const rows = await drizzle.execute(sql`
      select 1 from file_index where state = 'pending' union all select 1 from job
      where queue in ('ingest', 'follow-folder') limit 1`)
    return rows.length === 0
  })
}

async function sendTo(
  url: string,
  who: Person,
  { method, json }: { method?: string; json?: unknown },
): Promise<ApiResponse> {
  const response = await fetch(url, {
    method: method ?? (json === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: `Bearer ${tokenOf(who)}`,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(json === undefined ? {} : { body: typeof json === 'string' ? json : JSON.stringify(json) }),
  })
  return { status: response.status, body: Object(await response.json()), headers: response.headers }
}

function tokenOf({ subject, groups }: Person): string {
  const nowS = Math.floor(Date.now() / 1_000)
  const claims = { sub: subject, groups: [...groups], iat: nowS, exp: nowS + 3_600 }
  return signWithSecret(secret, { claims })
}
