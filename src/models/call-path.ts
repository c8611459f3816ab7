import type { CallableAgents } from '#agents/callable-agents.ts'
import { computeEnvironment } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { createCallReport } from '#inference/call-report.ts'
import { type Admit, createInference } from '#inference/inference.ts'
import { callMetrics } from '#inference/metrics.ts'
import { createTokenCounter } from '#inference/token-count/counter.ts'
import { createTransport } from '#inference/transport/create-transport.ts'
import { createFlite } from '#inference/upstreams/flite/adapter.ts'
import { adapters as adaptersByKind } from '#inference/upstreams/index.ts'
import { createLlama } from '#inference/upstreams/llama/adapter.ts'
import { createOnnx } from '#inference/upstreams/onnx/adapter.ts'
import { createLayout, modelsFolder as modelsFolderOf } from '#installer/layout.ts'
import { createLibrary } from '#installer/library.ts'
import { readDescriptors, streamsWithin } from '#lib/descriptors.ts'
import type { Foundation } from '#module.ts'
import type { Log } from '#telemetry/log.ts'
import type { Ledger } from '#usage/ledger.ts'
import type { AccessRule } from './access-rules.ts'
import { createCatalogue } from './catalogue.ts'
import { fliteFolder } from './flite-config.ts'
import { ggufModels } from './gguf-models.ts'
import { llamaFolder } from './llama-config.ts'
import { createModelAccess } from './model-access.ts'
import { createModelResolver } from './model-resolver.ts'
import { createModelNames } from './names.ts'
import { onnxFolder } from './onnx-config.ts'
import { onnxModels } from './onnx-models.ts'
import { startRouting } from './start-routing.ts'
import { configuredUpstreams } from './upstreams.ts'

/**
 * A new connection delays the first event by a round trip, with TLS by two or three. Upstreams that close idle
 * connections sooner are noticed, and a request on one that is closing is sent again. Not with `fetch`,
 * so there it is below the idle timeout of common servers.
 */
const idleMs = { socket: 60_000, fetch: 4_000 }

const transportLimits = {
  idleSocketsPerOriginMax: 1_024,
  headerBytesMax: 65_536,
  /** Received bytes of one generation that were not passed on yet. */
  bufferBytesMax: 262_144,
}

/** The path of a call: from the model name of a request to the response of an upstream. */
export function startCallPath(
  needs: Pick<Foundation, 'config' | 'fetch' | 'log' | 'metrics' | 'now'> & {
    accessRules: () => readonly AccessRule[]
    admit: Admit
    callableAgents: CallableAgents
    usageLedger: Ledger | null
  },
) {
  const { config, log, now, metrics, callableAgents: agents, usageLedger } = needs
  const { limits, retry, deadlines } = config
  const { keyLabels, keySeriesMax } = config.metrics
  const callReport = createCallReport({
    log,
    metrics,
    keySeriesMax: keyLabels ? keySeriesMax : null,
  })
  let upstreams = configuredUpstreams(config)
  const transport = createTransport(config.transport, {
    fetch: needs.fetch,
    connectMs: () => config.deadlines.connectMs,
    ...transportLimits,
    idleMs: idleMs[config.transport],
    log,
    onResponse: callReport.upstreamAnswered,
  })
  const modelsFolder = modelsFolderOf(config)
  const installed = createLibrary(createLayout(modelsFolder), log)
  const environment = computeEnvironment(config)
  const llama = createLlama({
    models: () => ggufModels(installed),
    settings: { ...config.llama, packageFolder: llamaFolder(config) },
    environment,
    log,
  })
  const onnx = createOnnx({
    models: () => onnxModels(installed),
    settings: { ...config.onnx, packageFolder: onnxFolder(config) },
    environment,
    log,
  })
  const flite = createFlite({
    settings: { ...config.flite, packageFolder: fliteFolder(config) },
    environment,
    log,
  })
  const adapters = { ...adaptersByKind, llama, onnx, flite }
  const modelNames = createModelNames(config.compat)
  const access = createModelAccess(modelNames, needs.accessRules)
  const catalogue = createCatalogue({
    config,
    upstreams,
    adapters,
    transport,
    access,
    log,
    now,
  })
  const routing = startRouting({
    ...needs,
    upstreams,
    adapters,
    transport,
    onAttemptEnded: callReport.attemptEnded,
  })
  const { router } = routing
  const inference = createInference({
    adapters,
    transport,
    limits,
    deadlines,
    retry,
    router,
    admit: needs.admit,
    streamsWithinDescriptors: streamsWithinDescriptors(config, log),
    onSettled(record, job) {
      callReport.callEnded(record, job !== null && job.streamed !== false)
      if (job !== null) tokenCounter.learn(record, job)
      usageLedger?.addCall(record, job)
    },
  })
  const tokenCounter = createTokenCounter({ inference, log, settings: config.tokens })
  metrics.gauge(callMetrics.running, inference.running)
  return {
    services: {
      transport,
      upstreams: () => upstreams,
      modelsFolder,
      /** The current uses of an installed model, as sentences. */
      async usesOfModel(installedAs: string): Promise<readonly string[]> {
        return (await Promise.all([llama, onnx].map((each) => each.usesOf(installedAs)))).flat()
      },
      catalogue,
      router,
      waitingCalls: routing.waitingCalls,
      modelNames,
      tokenCounter,
      modelResolver: createModelResolver({ catalogue, access, agents, names: modelNames, log }),
      inference,
    },
    reload(next: Config) {
      upstreams = configuredUpstreams(next)
      routing.reload(next, upstreams)
      catalogue.configure({ config: next, upstreams })
      inference.configure(next)
    },
    async close() {
      tokenCounter.close()
      routing.close()
      catalogue.close()
      await Promise.all([llama.close(), onnx.close(), flite.close()])
      transport.close()
    },
  }
}

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
