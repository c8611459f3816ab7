import { computeEnvironment, loadConfigFromProcess } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { createOnnx } from '#inference/upstreams/onnx/adapter.ts'
import { packageFault } from '#inference/upstreams/onnx/package.ts'
import { installRuntime } from '#install-packages.ts'
import { installFromHub, readModelArguments } from '#installer/install-command.ts'
import { createLayout, modelsFolder } from '#installer/layout.ts'
import { createLibrary } from '#installer/library.ts'
import { commandLine } from '#lib/own-program.ts'
import { localRuntime } from '#local-runtimes.ts'
import { engineFaults } from '#speech/engines/registry.ts'
import { doesNotWork } from '#start-error.ts'
import { onnxFolder } from './onnx-config.ts'
import { onnxModels } from './onnx-models.ts'
import { chooseWeights, defaultModels, onnxFiles } from './onnx-weights.ts'

const usage = `
Usage: ${commandLine('embed install')} [model] [--reranker] [--revision main]

Installs the runtime of local embedding models and a model of the hub (installer.hub_url), and verifies
them. Default: ${defaultModels.embed}. --reranker: a rerank model, by default
${defaultModels.rerank}.`

/** The command `embed install`. */
export async function installEmbedding(args: readonly string[]): Promise<number> {
  const given = readModelArguments(args, {
    usage,
    options: {
      reranker: { type: 'boolean', default: false },
      revision: { type: 'string', default: 'main' },
    },
  })
  if (given === null) return 0
  const { reranker, revision } = given.options
  const repository = given.model ?? defaultModels[reranker ? 'rerank' : 'embed']
  const config = loadConfigFromProcess([upstreamFaults, engineFaults])
  if (packageFault(onnxFolder(config)) !== null) await installRuntime(localRuntime(config, 'embed'))
  const installed = await installFromHub(config, {
    repository,
    revision,
    files: onnxFiles,
    choose: chooseWeights,
  })
  const description = await verify(config, installed.name)
  process.stdout.write(`${description}\nA running gateway detects it within a minute.\n`)
  return 0
}

/** Runs the model once; returns what it is. */
async function verify(config: Config, name: string): Promise<string> {
  const log = { info() {}, warn() {}, error() {} }
  const library = createLibrary(createLayout(modelsFolder(config)), log)
  const faults: string[] = []
  const note = (message: string, fields: Readonly<Record<string, unknown>> = {}) =>
    void faults.push(`${message}: ${fields['reason'] ?? fields['error'] ?? ''}`)
  const onnx = createOnnx({
    models: () => onnxModels(library),
    settings: { ...config.onnx, packageFolder: onnxFolder(config) },
    environment: computeEnvironment(config),
    log: { info() {}, warn: note, error: note },
  })
  try {
    return await onnx.tryModel(name)
  } catch (error) {
    throw doesNotWork(name, error, faults[0])
  } finally {
    await onnx.close()
  }
}
