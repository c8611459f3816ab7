import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { computeEnvironment, loadConfigFromProcess } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { createOnnx } from '#inference/upstreams/onnx/adapter.ts'
import {
  binariesPath,
  packageFault,
  packageName,
  packageVersion,
} from '#inference/upstreams/onnx/package.ts'
import { installPackages } from '#install-packages.ts'
import { installFromHub, readModelArguments } from '#installer/install-command.ts'
import { createLayout, modelsFolder } from '#installer/layout.ts'
import { createLibrary } from '#installer/library.ts'
import { commandLine } from '#lib/own-program.ts'
import { engineFaults } from '#speech/engines/registry.ts'
import { StartError } from '#start-error.ts'
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
  await installRuntime(onnxFolder(config))
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

/** Installs the runtime without the libraries of other platforms, which are four fifths of it. */
export async function installRuntime(folder: string): Promise<void> {
  if (packageFault(folder) === null) return
  await installPackages(folder, [`${packageName}@${packageVersion}`])
  const binaries = binariesPath(folder)
  const { platform, arch } = process
  for (const name of readdirSync(binaries)) {
    if (name !== platform) rmSync(join(binaries, name), { recursive: true })
  }
  const own = join(binaries, platform)
  const processors = readdirSync(binaries).includes(platform) ? readdirSync(own) : []
  for (const name of processors) {
    if (name !== arch) rmSync(join(own, name), { recursive: true })
  }
  if (!processors.includes(arch)) {
    throw new StartError(`There is no ${packageName} for ${platform} on ${arch}.`)
  }
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
    environment: computeEnvironment(),
    log: { info() {}, warn: note, error: note },
  })
  try {
    return await onnx.tryModel(name)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const [cause] = faults
    throw new StartError(
      `${name} was installed but does not work: ${reason}${cause === undefined ? '' : ` (${cause})`}`,
    )
  } finally {
    await onnx.close()
  }
}
