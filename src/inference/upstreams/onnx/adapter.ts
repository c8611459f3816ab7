import { availableParallelism } from 'node:os'
import type { EmbeddingInput } from '#inference/embeddings.ts'
import { LoadedModels } from '#inference/local-models/loaded-models.ts'
import { fileState, type LocalModel } from '#inference/local-models/local-model.ts'
import type { RerankInput, RerankResult } from '#inference/rerank.ts'
import type { Adapter, UpstreamModel } from '#inference/upstream.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { decodeEmbeddings, decodeScores } from './decode.ts'
import { addPrefix, splitTexts } from './encode.ts'
import { EncoderProcess } from './encoder-process.ts'
import { type FilePaths, type Manifest, readManifest } from './manifest.ts'
import { entryPath, packageFault } from './package.ts'
import type { Urgency } from './run-queue.ts'

/** The name of the embedding model that was installed last. */
const localAlias = 'local'

type OnnxSettings = {
  readonly packageFolder: string
  /** 0: half of the processors. */
  readonly threads: number
  readonly modelsLoadedMax: number
  readonly memoryBytesMax: number
  readonly queueMax: number
  readonly loadMs: number
  readonly idleMs: number
}

/** An installed model with one ONNX file. */
export type EncoderModel = LocalModel & { readonly files: FilePaths; readonly installedAt: string }

export type OnnxDeps = {
  /** Returns the currently installed models with an ONNX file. */
  models: () => Promise<readonly EncoderModel[]>
  settings: OnnxSettings
  /** The environment of the model processes. */
  environment: Readonly<Record<string, string | undefined>>
  log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** Embeds and reranks with the ONNX models on this machine, each in its own process while in use. */
export type Onnx = Adapter & {
  /** Runs a model once; returns a sentence about it. */
  tryModel(name: string): Promise<string>
  /** The current uses of an installed model, as sentences; idle models of it are unloaded first. */
  usesOf(installedAs: string): Promise<readonly string[]>
  /** Kills the processes; running requests fail. */
  close(): Promise<void>
}

/** A run takes seconds on a slow processor that does other work too. */
const runMs = 120_000
/** Texts of one request that are queued at a time. */
const runsPerRequestMax = 4

export function createOnnx({ models, settings, environment, log }: OnnxDeps): Onnx {
  const loaded = new LoadedModels({
    settings: { ...settings, sequencesMax: settings.queueMax, queueMax: 0 },
    start: (model: DescribedModel) => startProcess(model),
    log,
  })
  let hasWarned = false

  function startProcess(model: DescribedModel): EncoderProcess {
    const { files, manifest, path } = model
    const tokenizerConfigPath = files.get('tokenizer_config.json')
    return new EncoderProcess({
      name: model.name,
      loadMs: settings.loadMs,
      runMs,
      memoryBytesMax: settings.memoryBytesMax,
      runsQueuedMax: settings.queueMax * runsPerRequestMax,
      environment,
      log,
      load: {
        packageEntry: entryPath(settings.packageFolder),
        modelPath: path,
        tokenizerPath: files.get('tokenizer.json') ?? '',
        ...(tokenizerConfigPath === undefined ? {} : { tokenizerConfigPath }),
        manifest,
        threads: settings.threads || Math.max(1, Math.floor(availableParallelism() / 2)),
      },
    })
  }

  async function describe(model: EncoderModel): Promise<DescribedModel | null> {
    try {
      const manifest = await readManifest(model.name, model.files)
      return manifest === null ? null : { ...model, manifest }
    } catch (error) {
      log.warn('invalid model files, model ignored', { model: model.name, error })
      return null
    }
  }

  async function find(name: string, task: Manifest['task']) {
    const fault = packageFault(settings.packageFolder)
    if (fault !== null) throw fault
    const installed = (await models()).find((each) => each.name === name)
    const model = installed === undefined ? null : await describe(installed)
    const state = model === null ? null : await fileState(model.path)
    if (model === null || state === null) {
      throw new AppError('model_not_found', `No such model on this machine: ${name}.`, {
        param: 'model',
      })
    }
    if (model.manifest.task === task) return { model, key: state.key }
    const verb = { embed: 'embed texts', rerank: 'rerank documents' }[task]
    throw new AppError('upstream_refused', `The model "${name}" does not ${verb}.`)
  }

  /** Runs parts of a request, a few at a time, in the order of the parts. */
  async function runParts<T>(
    { name, task, urgency }: { name: string; task: Manifest['task']; urgency: Urgency },
    partsOf: (manifest: Manifest) => readonly ((process: EncoderProcess) => Promise<T>)[],
    signal: CancelSignal,
  ): Promise<readonly T[]> {
    const file = await find(name, task)
    const slot = await loaded.acquire(file, signal)
    try {
      const parts = partsOf(file.model.manifest)
      const results: T[] = []
      const width = urgency === 'query' ? 1 : runsPerRequestMax
      for (let at = 0; at < parts.length; at += width) {
        const some = parts.slice(at, at + width).map((part) => part(slot.process))
        results.push(...(await Promise.all(some)))
      }
      slot.succeeded()
      return results
    } finally {
      slot.release()
    }
  }

  return {
    // biome-ignore lint/correctness/useYield: it only throws
    async *generate(_, { model }) {
      throw new AppError('upstream_refused', `The model "${model}" does not generate text.`)
    },

    async listModels() {
      const installed = (await Promise.all((await models()).map(describe))).filter(
        (model) => model !== null,
      )
      const paths = new Set(installed.map(({ path }) => path))
      await loaded.unload(({ path }) => !paths.has(path))
      const fault = packageFault(settings.packageFolder)
      if (fault !== null && installed.length > 0 && !hasWarned) {
        hasWarned = true
        log.warn('installed models unavailable', { reason: fault.message })
      }
      if (fault !== null) return []
      const newest = installed
        .filter(({ manifest }) => manifest.task === 'embed')
        .toSorted((one, other) => (one.installedAt < other.installedAt ? 1 : -1))[0]
      return installed.map((model) => listed(model, model === newest ? [localAlias] : []))
    },

    async embed(
      { texts, dims, title, purpose = 'passage' }: EmbeddingInput,
      { model: name, signal },
    ) {
      const results = await runParts(
        { name, task: 'embed', urgency: purpose },
        (manifest) => {
          return splitTexts(texts.map((text) => addPrefix(text, { purpose, title }, manifest))).map(
            (some) => (process) => process.run({ kind: 'embed', texts: some }, purpose, signal),
          )
        },
        signal,
      )
      return decodeEmbeddings(results, { name, dims })
    },

    async rerank(input: RerankInput, { model: name, signal }): Promise<RerankResult> {
      const { query, documents, tokensPerDocumentMax: documentTokensMax } = input
      const results = await runParts(
        { name, task: 'rerank', urgency: 'query' },
        ({ tokensMax }) =>
          splitTexts(documents).map((some) => (process) => {
            const limit = { documentTokensMax: documentTokensMax ?? tokensMax }
            const run = { kind: 'score', query, documents: some, ...limit } as const
            return process.run(run, 'query', signal)
          }),
        signal,
      )
      return decodeScores(results)
    },

    async tryModel(name) {
      const installed = (await models()).find((each) => each.name === name)
      const manifest = installed === undefined ? null : (await describe(installed))?.manifest
      if (manifest == null) {
        throw new AppError(
          'upstream_refused',
          'it is no embedding or rerank model: it needs one .onnx file, tokenizer.json, and a config.json or sluice.json that tells its task.',
        )
      }
      const signal = new AbortController().signal
      const run =
        manifest.task === 'embed'
          ? ({ kind: 'embed', texts: ['text'] } as const)
          : ({ kind: 'score', query: 'q', documents: ['d'], documentTokensMax: 8 } as const)
      const [result] = await runParts(
        { name, task: manifest.task, urgency: 'query' },
        () => [(process) => process.run(run, 'query', signal)],
        signal,
      )
      return result?.kind === 'embedded'
        ? `${name} embeds texts of up to ${manifest.tokensMax} tokens in ${result.dims} dimensions.`
        : `${name} reranks documents of up to ${manifest.tokensMax} tokens.`
    },

    async usesOf(installedAs) {
      await loaded.unload((model) => model.installedAs === installedAs)
      return loaded
        .usedBy(installedAs)
        .map(({ name, count }) => `The model ${name} is serving ${count} requests.`)
    },

    close: () => loaded.close(),
  }
}

type DescribedModel = EncoderModel & { readonly manifest: Manifest }

function listed({ name, manifest, installedAt }: DescribedModel, aliases: readonly string[]) {
  const model: UpstreamModel = {
    id: name,
    mode: manifest.task,
    aliases,
    created: Math.floor(Date.parse(installedAt) / 1000),
    ownedBy: null,
    contextWindow: manifest.tokensMax,
  }
  return model
}
