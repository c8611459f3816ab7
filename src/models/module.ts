import { join } from 'node:path'
import type { CallableAgents } from '#agents/callable-agents.ts'
import type { Audit } from '#audit/store.ts'
import { computeEnvironment } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { createCallReport } from '#inference/call-report.ts'
import { createInference } from '#inference/inference.ts'
import { createTokenCounter } from '#inference/token-count/counter.ts'
import { createTransport } from '#inference/transport/create-transport.ts'
import { adapters as adaptersByKind } from '#inference/upstreams/index.ts'
import { createLlama } from '#inference/upstreams/llama/adapter.ts'
import { createLayout } from '#installer/layout.ts'
import { createLibrary } from '#installer/library.ts'
import { readDescriptors, streamsWithin } from '#lib/descriptors.ts'
import type { Limits } from '#limits/admission.ts'
import { type Foundation, module } from '#module.ts'
import type { Log } from '#telemetry/log.ts'
import type { Ledger } from '#usage/ledger.ts'
import { createCatalogue } from './catalogue.ts'
import { upstreams as upstreamChecks } from './doctor.ts'
import { createDrains } from './drains.ts'
import { modelEndpoints } from './endpoints.ts'
import { ggufModels } from './gguf-models.ts'
import { llamaFolder } from './llama-config.ts'
import { createModelAccess } from './model-access.ts'
import { createModelResolver, type ModelResolver } from './model-resolver.ts'
import { createModelNames } from './names.ts'
import { startRouting } from './start-routing.ts'
import { type UpstreamEndpointDeps, upstreamEndpoints } from './upstream-endpoints.ts'
import { configuredUpstreams } from './upstreams.ts'

const transportLimits = {
  /** Below the idle timeout of common servers, so that a pooled socket is rarely a dead one. */
  idleMs: 4_000,
  idleSocketsPerOriginMax: 256,
  headerBytesMax: 65_536,
  /** Received bytes of one generation that were not passed on yet. */
  bufferBytesMax: 262_144,
}

/** The models of requests, their upstreams, and the path to them. */
export const modelsModule = module({
  name: 'models',
  tags: {
    Models: 'The model list, embeddings, reranking and token counts.',
    Upstreams: 'State and load of the inference servers behind the gateway.',
  },
  doctor: upstreamChecks,
  async start(
    needs: Foundation & {
      audit: Audit
      callableAgents: CallableAgents
      limits: Limits
      usageLedger: Ledger | null
    },
  ) {
    const { config, log, now, metrics, settings, callableAgents: agents, usageLedger } = needs
    const { limits, retry, deadlines } = config
    const callReport = createCallReport({ log, metrics })
    const upstreams = configuredUpstreams(config)
    const transport = createTransport(config.transport, {
      fetch: needs.fetch,
      connectMs: deadlines.connectMs,
      ...transportLimits,
      log,
      onResponse: callReport.upstreamAnswered,
    })
    const modelsFolder = config.installer.folder ?? join(config.data, 'models')
    const installed = createLibrary(createLayout(modelsFolder), log)
    const llama = createLlama({
      models: () => ggufModels(installed),
      settings: { ...config.llama, packageFolder: llamaFolder(config) },
      environment: computeEnvironment(),
      log,
    })
    const adapters = { ...adaptersByKind, llama }
    const modelNames = createModelNames(config.compat)
    const access = createModelAccess(modelNames, () => settings.current().models.access)
    const catalogue = createCatalogue({
      config,
      upstreams,
      adapters,
      transport,
      access,
      log,
      now,
    })
    const routing = startRouting({ ...needs, upstreams, adapters, transport })
    const { router } = routing
    const drains = await createDrains({ ...needs, router })
    const inference = createInference({
      adapters,
      transport,
      limits,
      deadlines,
      retry,
      router,
      admit: needs.limits.admit,
      streamsWithinDescriptors: streamsWithinDescriptors(config, log),
      onSettled(record, job) {
        callReport.callEnded(record)
        if (job !== null) tokenCounter.learn(record, job)
        usageLedger?.addCall(record, job)
      },
    })
    const tokenCounter = createTokenCounter({ inference, log, settings: config.tokens })
    metrics.gauge(
      { name: 'sluice_generations_running', help: 'Generations in progress.' },
      inference.running,
    )
    return {
      services: {
        transport,
        upstreams,
        modelsFolder,
        llama,
        catalogue,
        router,
        drains,
        modelNames,
        tokenCounter,
        modelResolver: createModelResolver({ catalogue, access, agents, names: modelNames, log }),
        inference,
      },
      async close() {
        await drains.close()
        tokenCounter.close()
        routing.close()
        catalogue.close()
        await llama.close()
        transport.close()
      },
    }
  },
  endpoints: ({
    builtInEmbedders,
    speechModels,
    ...needs
  }: UpstreamEndpointDeps & {
    modelResolver: ModelResolver
    builtInEmbedders: readonly string[]
    speechModels: readonly string[]
  }) => [
    ...modelEndpoints({
      modelResolver: needs.modelResolver,
      otherModels: [
        ...builtInEmbedders.map((id) => ({ id, mode: 'embed' as const })),
        ...speechModels.map((id) => ({ id, mode: 'transcribe' as const })),
      ],
    }),
    ...upstreamEndpoints(needs),
  ],
})

/** Warns once where the descriptor limit refuses streams below the configured limit. */
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
