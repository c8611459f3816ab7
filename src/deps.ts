import type { Database } from '#db/client.ts'
import { type Agents, createAgents } from './agents/agents.ts'
import { type Auth, createAuth } from './auth/auth.ts'
import { type Branding, createBranding } from './branding/branding.ts'
import { type Clock, clock } from './clock.ts'
import { programEnvironment } from './config/load.ts'
import type { Config } from './config/schema.ts'
import type { Embedders } from './embedding/embedder.ts'
import { createEmbedders } from './embedding/embedders.ts'
import { createShares, type Shares } from './files/shares/shares.ts'
import { startFileSweep } from './files/sweep/sweep.ts'
import { createFiles, type Files } from './files/tree.ts'
import { createHostedTools, type HostedToolbox } from './hosted-tools/hosted-tools.ts'
import { createOpenSockets, type OpenSockets } from './http/open-sockets.ts'
import { createGenerations, type Generations } from './inference/generate.ts'
import type { GenerationRecord } from './inference/record.ts'
import { createTokenCounter, type TokenCounter } from './inference/token-count/counter.ts'
import { createSocketTransport } from './inference/transport/socket-transport.ts'
import type { Transport } from './inference/transport.ts'
import { adapters } from './inference/upstreams/index.ts'
import { createJobs } from './jobs/jobs.ts'
import { type Catalogue, createCatalogue } from './models/catalogue.ts'
import { createModelNames, type ModelNames } from './models/names.ts'
import { createOffer, type Offer } from './models/offer.ts'
import { configuredUpstreams } from './models/upstreams.ts'
import { resolveHost } from './outbound/resolve.ts'
import type { Rerankers } from './rerank/reranker.ts'
import { createRerankers } from './rerank/rerankers.ts'
import { type Conversations, createConversations } from './responses/conversations/conversations.ts'
import { createResponseRuns, type ResponseRuns } from './responses/runs.ts'
import { createResponseStore, type ResponseStore } from './responses/store.ts'
import type { Collections } from './retrieval/collections/collections.ts'
import { createCollections } from './retrieval/collections/create-collections.ts'
import { createExtraction } from './retrieval/extraction/extraction.ts'
import { createFileSearch } from './retrieval/file-search/file-search.ts'
import { createChunkTables } from './retrieval/index/tables.ts'
import { createIngest, type Ingest } from './retrieval/ingest/ingest.ts'
import { createReindexes } from './retrieval/reindex/create-reindexes.ts'
import type { Reindexes } from './retrieval/reindex/reindex.ts'
import { createSearch } from './retrieval/search/create-search.ts'
import type { Search } from './retrieval/search/search.ts'
import { createSealer, type Sealer } from './sealing/sealer.ts'
import { retrievalSettings, withSettings } from './settings/live-config.ts'
import { createSettings, type Settings } from './settings/settings.ts'
import { openAudioDecoder } from './speech/decoders/open-decoder.ts'
import { createEnginePool } from './speech/engines/pool.ts'
import { openRecognition } from './speech/recognition/recognition.ts'
import type { RecognitionOptions } from './speech/recognition/recognition-events.ts'
import { createSpeechSessions, type SpeechSessions } from './speech/session/sessions.ts'
import {
  createTranscriptions,
  type Transcriptions,
} from './speech/transcriptions/transcriptions.ts'
import { openStorage } from './storage/open-storage.ts'
import type { Storage } from './storage/storage.ts'
import { renderLost } from './surfaces/responses/render.ts'
import type { Log } from './telemetry/log.ts'
import { createTranslations, type Translations } from './translations/translations.ts'

/** The world, named once. Features take the members that they need, never the whole of it. */
export type Deps = {
  config: Config
  log: Log
  clock: Clock
  database: Database
  auth: Auth
  transport: Transport
  catalogue: Catalogue
  agents: Agents
  modelNames: ModelNames
  /** What callers may name as a model. */
  offer: Offer
  generations: Generations
  tokenCounter: TokenCounter
  hostedTools: HostedToolbox
  embedders: Embedders
  rerankers: Rerankers
  settings: Settings
  sealer: Sealer
  responses: ResponseStore
  conversations: Conversations
  runs: ResponseRuns
  storage: Storage
  files: Files
  shares: Shares
  collections: Collections
  ingest: Ingest
  reindexes: Reindexes
  search: Search
  translations: Translations
  branding: Branding
  speech: SpeechSessions
  transcriptions: Transcriptions
  sockets: OpenSockets
  /** Whether the process was told to stop. */
  draining: () => boolean
  /** Ends everything that has a lifetime, in the order that work needs it. */
  close: () => Promise<void>
}

const transportLimits = {
  /** Below the idle timeout of the servers in use, so that a kept socket is rarely a dead one. */
  idleMs: 4_000,
  idleSocketsPerOriginMax: 256,
  headerBytesMax: 65_536,
  /** What a generation may have received and not yet passed on. */
  bufferBytesMax: 262_144,
}

type World = { log: Log; draining: () => boolean; database: Database }

export async function createDeps(configured: Config, world: World): Promise<Deps> {
  const { log, database } = world
  const settings = await createSettings({ config: configured, database, log, now: clock.now })
  const config = withSettings(configured, settings)
  const auth = await createAuth({ config, database, log, clock, fetch })
  const models = createModels(config, world)
  const stored = await createStored(config, world)
  const { closeSpeech, ...speech } = await createSpeech(config, world)
  const { closeDocuments, ...documents } = await createDocuments(config, world, {
    ...models,
    settings,
  })
  return {
    ...{ config, clock, ...world, settings, auth, ...models, ...stored, ...speech, ...documents },
    hostedTools: createHostedTools({
      config,
      fetch,
      resolve: resolveHost,
      fileSearch: createFileSearch({ search: documents.search, log }),
    }),
    ...(await createPortal(config, world)),
    sockets: createOpenSockets(),
    async close() {
      await closeSpeech()
      await closeDocuments()
      await stored.runs.close()
      models.tokenCounter.close()
      models.catalogue.close()
      models.transport.close()
      await auth.close()
      await settings.close()
      await database.close()
    },
  }
}

/** What callers may name as a model, and the ways to it. */
function createModels(config: Config, { log, database }: World) {
  const transport = createSocketTransport({
    connectMs: config.deadlines.connectMs,
    ...transportLimits,
    log,
  })
  const catalogue = createCatalogue({
    config,
    upstreams: configuredUpstreams(config.upstream),
    adapters,
    transport,
    log,
    now: clock.now,
  })
  const agents = createAgents(database, { now: clock.now })
  const modelNames = createModelNames(config.compat)
  const tokenCounter = createTokenCounter({
    adapters,
    transport,
    limits: config.limits,
    settings: config.tokens,
    log,
  })
  const { firstEventMs } = config.deadlines
  const asking = { transport, retry: config.retry, answerMs: firstEventMs, catalogue }
  return {
    ...{ transport, catalogue, agents, modelNames, tokenCounter },
    offer: createOffer({ catalogue, agents, names: modelNames, log }),
    generations: createGenerations({
      adapters,
      transport,
      limits: config.limits,
      deadlines: config.deadlines,
      retry: config.retry,
      settled: (record, job) => {
        logGeneration(log, record)
        tokenCounter.learn(record, job)
      },
    }),
    embedders: createEmbedders({ ...asking, models: config.model }),
    rerankers: createRerankers(asking),
  }
}

/** Responses and conversations that outlive their request. */
async function createStored(config: Config, { log, database }: World) {
  const storing = { limits: config.responses, now: clock.now }
  const responses = createResponseStore(database, storing)
  const runs = await createResponseRuns({
    store: responses,
    bus: database,
    soleProcess: database.kind === 'pglite',
    settings: config.responses,
    heartbeatMs: config.stream.heartbeatMs,
    renderLost,
    log,
    now: clock.now,
  })
  return { responses, conversations: createConversations(database, storing), runs }
}

type Models = ReturnType<typeof createModels> & { settings: Settings }

/** Files, and what is found in them. */
async function createDocuments(config: Config, { log, database }: World, models: Models) {
  const { now } = clock
  const { agents, embedders, rerankers } = models
  const settings = retrievalSettings(models.settings)
  const storage = await openStorage(config, now)
  const jobs = await createJobs({ database, log })
  const chunkTables = createChunkTables({ database, jobs, now })
  const collections = createCollections({
    ...{ database, chunkTables, embedders, jobs, settings, now },
    limits: config.retrieval,
    usedByAgents: agents.nameCollection,
  })
  const kept = { database, storage, settings: config.files, hooks: collections.fileHooks, now }
  const extraction = createExtraction({ limits: config.retrieval, log })
  const ingest = createIngest({
    ...{ database, jobs, storage, embedders, chunkTables, extraction, log, now },
  })
  const reindexes = await createReindexes({
    ...{ database, jobs, embedders, chunkTables, ingest, log, now },
    settings: config.retrieval,
  })
  const sweep = startFileSweep({ ...kept, log })
  return {
    ...{ storage, collections, ingest, reindexes },
    files: createFiles(kept),
    shares: createShares({ database, now }),
    search: createSearch({ database, embedders, rerankers, settings, log }),
    async closeDocuments() {
      await sweep.stop()
      await ingest.close()
      await jobs.close()
    },
  }
}

/** What clients keep for us, and how the portal looks and reads. */
async function createPortal(config: Config, { database }: World) {
  const { now } = clock
  const sealer = await createSealer({ sealKeys: config.sealKeys, database })
  return {
    sealer,
    translations: createTranslations(database, { settings: config.translations, now }),
    branding: createBranding(database, { settings: config.branding, sealer, now }),
  }
}

/** Speech to text, by sockets and in files, over the same engines. */
async function createSpeech(config: Config, { log }: World) {
  const pool = createEnginePool(config.engine, { log, environment: programEnvironment() })
  const recognizing = { pool, settings: config.speech, log }
  const parts = {
    openRecognition: (options: RecognitionOptions) => openRecognition(recognizing, options),
    openAudioDecoder,
  }
  const speech = createSpeechSessions({ ...parts, config, languages: pool.languages, log })
  const transcriptions = await createTranscriptions({ ...parts, config, pool, log, now: clock.now })
  return {
    speech,
    transcriptions,
    async closeSpeech() {
      speech.close()
      await pool.close()
    },
  }
}

function logGeneration(log: Log, record: GenerationRecord): void {
  log.info('generation ended', {
    request_id: record.requestId,
    model: record.model,
    upstream: record.upstream,
    outcome: record.outcome,
    ...(record.error === null
      ? {}
      : { kind: record.error.kind, reason: record.error.message, cause: record.error.cause }),
    retries: record.retries,
    first_event_ms: record.firstEventMs === null ? null : Math.round(record.firstEventMs),
    duration_ms: Math.round(record.durationMs),
    input_tokens: record.usage?.inputTokens ?? null,
    output_tokens: record.usage?.outputTokens ?? null,
  })
}
