import { availableParallelism } from 'node:os'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { callIdsOf } from '#inference/tool-calls.ts'
import { createToolNames } from '#inference/tool-names.ts'
import type { Adapter } from '#inference/upstream.ts'
import { createLlamaDecoder, failureOf, type LlamaDecoder } from './decode.ts'
import { encodePrompt } from './encode.ts'
import type { Exchange } from './exchange.ts'
import { createLoadedModels, type Place } from './loaded-models.ts'
import type { LocalModel } from './local-model.ts'
import type { LlamaLog } from './log.ts'
import { createModelFiles } from './model-files.ts'
import { ModelProcess } from './model-process.ts'
import { entryPath, packageFault } from './package.ts'
import type { Prompt } from './wire.ts'

export type LlamaSettings = {
  readonly packageFolder: string
  readonly gpu: boolean
  /** 0: one less than there are processors. */
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
  /** The installed models, asked anew whenever they are needed. */
  models: () => Promise<readonly LocalModel[]>
  settings: LlamaSettings
  /** Of the processes: the ways to programs and devices. */
  environment: Readonly<Record<string, string | undefined>>
  log: LlamaLog
}

/** GGUF files on this machine, each run in a process of its own while somebody uses it. */
export type Llama = Adapter & {
  /**
   * Who uses an installed model at this moment, as sentences for people. One that is in memory and
   * not in use is taken out of it first, so where there are none, its files can be deleted.
   */
  usesOf(installedAs: string): Promise<readonly string[]>
  /** Ends the processes; what they are doing fails. */
  close(): Promise<void>
}

export function createLlama(deps: LlamaDeps): Llama {
  const { models, settings, log } = deps
  const { packageFolder, seed } = settings
  const loaded = createLoadedModels({ settings, start: (model) => startProcess(deps, model), log })
  let hasTold = false
  const files = createModelFiles({
    models,
    contextTokensMax: settings.contextTokensMax,
    loadedContextTokens: loaded.contextTokens,
  })
  const find = async (name: string) => {
    const fault = packageFault(packageFolder)
    if (fault !== null) throw fault
    return files.find(name)
  }

  return {
    async *generate(request, { model, signal, limits }) {
      const { toolNames, prompt } = readRequest(request, seed)
      const decoder = createLlamaDecoder({
        toolNames,
        takenCallIds: callIdsOf(request),
        toolArgumentCharsMax: limits.toolArgumentCharsMax,
      })
      const place = await loaded.enter(await find(model), signal)
      yield* readAnswer(place, prompt, { decoder, signal, log })
    },
    async listModels() {
      const installed = await models()
      const isInstalled = new Set(installed.map(({ path }) => path))
      await loaded.unload(({ path }) => !isInstalled.has(path))
      const fault = packageFault(packageFolder)
      if (fault !== null && installed.length > 0 && !hasTold) {
        hasTold = true
        log.warn('installed models are not offered', { reason: fault.message })
      }
      if (fault !== null) return []
      return files.describe(installed)
    },
    async countTokens(request, { model, signal }) {
      const { prompt } = readRequest(request, seed)
      const process = await loaded.peek(await find(model), signal)
      return countOf(process.begin('count', prompt), signal)
    },
    async usesOf(installedAs) {
      await loaded.unload((model) => model.installedAs === installedAs)
      return loaded.usedBy(installedAs).map(describeUse)
    },
    close: loaded.close,
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

function readRequest(request: GenerationRequest, seed: number | undefined) {
  const toolNames = createToolNames(request)
  return { toolNames, prompt: encodePrompt(request, { toolNames, seed: seed ?? randomSeed() }) }
}

async function* readAnswer(
  place: Place,
  prompt: Prompt,
  { decoder, signal, log }: { decoder: LlamaDecoder; signal: AbortSignal; log: LlamaLog },
): AsyncGenerator<EventBatch, void, void> {
  const exchange = place.process.begin('generate', prompt)
  // The place is free when the process says so, however this ends.
  void exchange.over.then(place.leave)
  try {
    for (let hasStarted = false; ; ) {
      const { hasBegun, pieces, ending } = await exchange.take(signal)
      const batch: GenerationEvent[] = []
      if (hasBegun && !hasStarted) batch.push({ type: 'generation-start' })
      hasStarted = hasBegun
      for (const piece of pieces) decoder.read(piece, batch)
      if (ending?.type === 'finished') {
        decoder.finish(ending, batch)
        place.worked()
      }
      if (batch.length > 0) yield batch
      if (ending === null) continue
      if (ending.type === 'finished') return
      log.info('a model gave no answer', { ...ending })
      throw failureOf(ending)
    }
  } finally {
    exchange.stop()
  }
}

async function countOf(exchange: Exchange, signal: AbortSignal): Promise<number> {
  for (;;) {
    const { ending } = await exchange.take(signal)
    if (ending?.type === 'counted') return ending.tokens
    if (ending !== null) throw failureOf(ending)
  }
}

function describeUse({ name, count }: { name: string; count: number }): string {
  if (count === 0) return `The model ${name} is just being loaded.`
  return `The model ${name} is at work for ${count} ${count === 1 ? 'request' : 'requests'}.`
}

function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0
}
