import type { Database } from '#db/client.ts'
import { type Agents, createAgents } from './agents/agents.ts'
import { type Auth, createAuth } from './auth/auth.ts'
import { type Clock, clock } from './clock.ts'
import type { Config } from './config/schema.ts'
import { createHostedTools, type HostedToolbox } from './hosted-tools/hosted-tools.ts'
import { createOpenSockets, type OpenSockets } from './http/open-sockets.ts'
import { createGenerations, type Generations } from './inference/generate.ts'
import type { GenerationRecord } from './inference/record.ts'
import { createTokenCounter, type TokenCounter } from './inference/token-count/counter.ts'
import { createSocketTransport } from './inference/transport/socket-transport.ts'
import type { Transport } from './inference/transport.ts'
import { adapters } from './inference/upstreams/index.ts'
import { type Catalogue, createCatalogue } from './models/catalogue.ts'
import { createModelNames, type ModelNames } from './models/names.ts'
import { createOffer, type Offer } from './models/offer.ts'
import { configuredUpstreams } from './models/upstreams.ts'
import { resolveHost } from './outbound/resolve.ts'
import { type Conversations, createConversations } from './responses/conversations/conversations.ts'
import { createResponseRuns, type ResponseRuns } from './responses/runs.ts'
import { createResponseStore, type ResponseStore } from './responses/store.ts'
import { createSealer, type Sealer } from './sealing/sealer.ts'
import { renderLost } from './surfaces/responses/render.ts'
import type { Log } from './telemetry/log.ts'

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
  sealer: Sealer
  responses: ResponseStore
  conversations: Conversations
  runs: ResponseRuns
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

export async function createDeps(
  config: Config,
  options: { log: Log; draining: () => boolean; database: Database },
): Promise<Deps> {
  const { log, draining, database } = options
  const auth = await createAuth({ config, database, log, clock, fetch })
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
  const offer = createOffer({ catalogue, agents, names: modelNames, log })
  const tokenCounter = createTokenCounter({
    adapters,
    transport,
    limits: config.limits,
    settings: config.tokens,
    log,
  })
  const generations = createGenerations({
    adapters,
    transport,
    limits: config.limits,
    deadlines: config.deadlines,
    retry: config.retry,
    settled: (record, job) => {
      logGeneration(log, record)
      tokenCounter.learn(record, job)
    },
  })
  const hostedTools = createHostedTools({ config, fetch, resolve: resolveHost })
  const sealer = await createSealer({ sealKeys: config.sealKeys, database })
  const storing = { limits: config.responses, now: clock.now }
  const responses = createResponseStore(database, storing)
  const conversations = createConversations(database, storing)
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
  const close = async () => {
    await runs.close()
    tokenCounter.close()
    catalogue.close()
    transport.close()
    await auth.close()
    await database.close()
  }
  return {
    ...{ config, log, clock, database, auth, transport, catalogue, generations, draining },
    ...{
      agents,
      modelNames,
      offer,
      hostedTools,
      sealer,
      responses,
      conversations,
      runs,
      tokenCounter,
    },
    sockets: createOpenSockets(),
    close,
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
