import { availableParallelism } from 'node:os'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import { LoadedModels, type ModelSlot } from '#inference/local-models/loaded-models.ts'
import type { LocalModel } from '#inference/local-models/local-model.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { callIdsOf } from '#inference/tool-calls.ts'
import { createToolNames } from '#inference/tools.ts'
import type { Adapter } from '#inference/upstream.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { failureOf, LlamaDecoder } from './decode.ts'
import { encodePrompt } from './encode.ts'
import type { ModelCall } from './model-call.ts'
import { ModelFiles } from './model-files.ts'
import { type LlamaLog, ModelProcess } from './model-process.ts'
import { entryPath, packageFault } from './package.ts'
import type { Prompt } from './wire.ts'

export type LlamaSettings = {
  readonly packageFolder: string
  readonly gpu: boolean
  /** 0: one less than the number of processors. */
  readonly threads: number
  readonly modelsLoadedMax: number
  readonly memoryBytesMax?: number
  readonly sequencesMax: number
  readonly queueMax: number
  readonly contextTokensMax: number
  readonly loadMs: number
  readonly idleMs: number
  readonly seed?: number
}

export type LlamaDeps = {
  /** Returns the currently installed models. */
  models: () => Promise<readonly LocalModel[]>
  settings: LlamaSettings
  /** The environment of the model processes. */
  environment: Readonly<Record<string, string | undefined>>
  log: LlamaLog
}

/** Runs the GGUF files on this machine, each in its own process while it is in use. */
export type Llama = Adapter & {
  /**
   * The current uses of an installed model, as sentences. Idle models of it are unloaded first, so its
   * files can be deleted if there are none.
   */
  usesOf(installedAs: string): Promise<readonly string[]>
  /** Kills the processes; running requests fail. */
  close(): Promise<void>
}

export function createLlama(deps: LlamaDeps): Llama {
  const { models, settings, log } = deps
  const { packageFolder, seed } = settings
  const loaded = new LoadedModels({ settings, start: (model) => startProcess(deps, model), log })
  let hasWarned = false
  const files = new ModelFiles()
  const find = async (name: string) => {
    const fault = packageFault(packageFolder)
    if (fault !== null) throw fault
    return files.find(await models(), name)
  }

  return {
    async *generate(request, { model, signal, limits }) {
      const { toolNames, prompt } = encodeRequest(request, seed)
      const decoder = new LlamaDecoder({
        toolNames,
        takenCallIds: callIdsOf(request),
        toolArgumentCharsMax: limits.toolArgumentCharsMax,
      })
      const slot = await loaded.acquire(await find(model), signal)
      yield* streamCall(slot, prompt, { decoder, signal, log })
    },
    async listModels() {
      const installed = await models()
      const isInstalled = new Set(installed.map(({ path }) => path))
      await loaded.unload(({ path }) => !isInstalled.has(path))
      const fault = packageFault(packageFolder)
      if (fault !== null && installed.length > 0 && !hasWarned) {
        hasWarned = true
        log.warn('installed models unavailable', { reason: fault.message })
      }
      if (fault !== null) return []
      const tokensMax = settings.contextTokensMax
      const described = installed.map((model) =>
        files.describe(model, { loadedTokens: loaded.contextTokens(model.name), tokensMax }),
      )
      return (await Promise.all(described)).filter((model) => model !== null)
    },
    async countTokens(request, { model, signal }) {
      const { prompt } = encodeRequest(request, seed)
      const process = await loaded.loadWithoutEviction(await find(model), signal)
      return awaitCount(process.startCall('count', prompt), signal)
    },
    async usesOf(installedAs) {
      await loaded.unload((model) => model.installedAs === installedAs)
      return loaded.usedBy(installedAs).map(describeUse)
    },
    close: () => loaded.close(),
  }
}

function startProcess({ settings, environment, log }: LlamaDeps, model: LocalModel): ModelProcess {
  return new ModelProcess({
    name: model.name,
    loadMs: settings.loadMs,
    environment,
    log,
    load: {
      packageEntry: entryPath(settings.packageFolder),
      modelPath: model.path,
      gpu: settings.gpu,
      threads: settings.threads || Math.max(1, availableParallelism() - 1),
      contextTokensMax: settings.contextTokensMax,
      sequences: settings.sequencesMax,
    },
  })
}

function encodeRequest(request: GenerationRequest, seed: number | undefined) {
  const toolNames = createToolNames(request)
  return { toolNames, prompt: encodePrompt(request, { toolNames, seed: seed ?? randomSeed() }) }
}

async function* streamCall(
  slot: ModelSlot<ModelProcess>,
  prompt: Prompt,
  { decoder, signal, log }: { decoder: LlamaDecoder; signal: CancelSignal; log: LlamaLog },
): AsyncGenerator<EventBatch, void, void> {
  const call = slot.process.startCall('generate', prompt)
  // The slot is released when the process reports it, however this ends.
  void call.released.then(slot.release)
  try {
    for (let hasStarted = false; ; ) {
      const { hasBegun, pieces, ending } = await call.take(signal)
      const batch: GenerationEvent[] = []
      if (hasBegun && !hasStarted) batch.push({ type: 'generation-start' })
      hasStarted = hasBegun
      for (const piece of pieces) decoder.read(piece, batch)
      if (ending?.type === 'finished') {
        decoder.finish(ending, batch)
        slot.succeeded()
      }
      if (batch.length > 0) yield batch
      if (ending === null) continue
      if (ending.type === 'finished') return
      log.info('model call failed', { ...ending })
      throw failureOf(ending)
    }
  } finally {
    call.stop()
  }
}

async function awaitCount(call: ModelCall, signal: CancelSignal): Promise<number> {
  for (;;) {
    const { ending } = await call.take(signal)
    if (ending?.type === 'counted') return ending.tokens
    if (ending !== null) throw failureOf(ending)
  }
}

function describeUse({ name, count }: { name: string; count: number }): string {
  if (count === 0) return `The model ${name} is being loaded.`
  return `The model ${name} is serving ${count} ${count === 1 ? 'request' : 'requests'}.`
}

function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0
}
