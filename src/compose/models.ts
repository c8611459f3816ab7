import { join } from 'node:path'
import { createAgents } from '#agents/agents.ts'
import { computeEnvironment } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { createEmbedders } from '#embedding/embedders.ts'
import { createGenerations } from '#inference/generate.ts'
import { reportGeneration } from '#inference/report-generation.ts'
import { createTokenCounter } from '#inference/token-count/counter.ts'
import { countAnswers } from '#inference/transport/counted-transport.ts'
import { createTransport } from '#inference/transport/create-transport.ts'
import { adapters as adaptersByKind } from '#inference/upstreams/index.ts'
import { createLayout } from '#installer/layout.ts'
import { createLibrary } from '#installer/library.ts'
import { readDescriptors, streamsWithin } from '#lib/descriptors.ts'
import { createCatalogue } from '#models/catalogue.ts'
import { createLocalModels } from '#models/local-models.ts'
import { createModelResolver } from '#models/model-resolver.ts'
import { createModelNames } from '#models/names.ts'
import { configuredUpstreams } from '#models/upstreams.ts'
import { createRerankers } from '#rerank/rerankers.ts'
import type { Log } from '#telemetry/log.ts'
import type { World } from './world.ts'

export type Models = ReturnType<typeof composeModels>

const transportLimits = {
  /** Below the idle timeout of the servers in use, so that a kept socket is rarely a dead one. */
  idleMs: 4_000,
  idleSocketsPerOriginMax: 256,
  headerBytesMax: 65_536,
  /** What a generation may have received and not yet passed on. */
  bufferBytesMax: 262_144,
}

/** What callers may name as a model, and the ways to it. */
export function composeModels(world: World) {
  const { config, log, database, clock, metrics } = world
  const { limits, retry, deadlines } = config
  const { now } = clock
  const upstreams = configuredUpstreams(config)
  const transport = countAnswers(
    createTransport(config.transport, {
      fetch: world.fetch,
      connectMs: deadlines.connectMs,
      ...transportLimits,
      log,
    }),
    upstreams.map(({ upstream }) => upstream),
    metrics.upstreamAnswered,
  )
  const modelsFolder = config.installer.folder ?? join(config.data, 'models')
  const llama = createLocalModels(config, {
    installed: createLibrary(createLayout(modelsFolder), log),
    environment: computeEnvironment(),
    log,
  })
  const adapters = { ...adaptersByKind, llama }
  const catalogue = createCatalogue({ config, upstreams, adapters, transport, log, now })
  const agents = createAgents(database, { now })
  const modelNames = createModelNames(config.compat)
  const tokenCounter = createTokenCounter({
    adapters,
    transport,
    limits,
    log,
    settings: config.tokens,
  })
  const asking = { transport, retry, answerMs: deadlines.firstEventMs, catalogue }
  return {
    transport,
    upstreams,
    modelsFolder,
    llama,
    catalogue,
    agents,
    modelNames,
    tokenCounter,
    modelResolver: createModelResolver({ catalogue, agents, names: modelNames, log }),
    generations: createGenerations({
      adapters,
      transport,
      limits,
      deadlines,
      retry,
      streamsWithinDescriptors: streamsWithinDescriptors(config, log),
      settled(record, job) {
        reportGeneration({ log, metrics }, record, job)
        tokenCounter.learn(record, job)
      },
    }),
    embedders: createEmbedders({ ...asking, models: config.model }),
    rerankers: createRerankers(asking),
    async close() {
      tokenCounter.close()
      catalogue.close()
      await llama.close()
      transport.close()
    },
  }
}

/** Told once, so that nobody wonders why streams are refused below their limit. */
function streamsWithinDescriptors(config: Config, log: Log): number {
  const descriptors = readDescriptors()
  if (descriptors === null) return Number.POSITIVE_INFINITY
  const streams = streamsWithin(descriptors, config)
  const { streamsMax } = config.limits
  if (streams < streamsMax) {
    log.warn('the limit of open files allows fewer streams than limits.streams_max', {
      limit: descriptors.limit,
      streams,
      streams_max: streamsMax,
    })
  }
  return streams
}
