import { loadConfigFromProcess, programEnvironment } from '#config/load.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { installRuntime } from '#install-packages.ts'
import { installFromHub, readModelArguments } from '#installer/install-command.ts'
import type { RemoteFile } from '#installer/sources/source.ts'
import { commandLine } from '#lib/own-program.ts'
import { localRuntime } from '#local-runtimes.ts'
import { defaultModel, findModel, modelGlobs } from '#speech/engines/local/model-files.ts'
import { runtimeEntry, speechFolders } from '#speech/engines/local/package.ts'
import { Recogniser } from '#speech/engines/local/recogniser.ts'
import { engineFaults } from '#speech/engines/registry.ts'
import { doesNotWork, StartError } from '#start-error.ts'

const usage = `
Usage: ${commandLine('speech install')} [model] [--revision main] [--runtime]

Installs the runtime of local speech recognition and a model of the hub (installer.hub_url), and
verifies them. Default: ${defaultModel.name} (${defaultModel.megabytes} MB).
--runtime: only the runtime, for a model in a folder of yours.`

const loadMs = 120_000
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** The command `speech install`. */
export async function installSpeech(args: readonly string[]): Promise<number> {
  const given = readModelArguments(args, {
    usage,
    options: {
      revision: { type: 'string', default: 'main' },
      runtime: { type: 'boolean', default: false },
    },
  })
  if (given === null) return 0
  const config = loadConfigFromProcess([upstreamFaults, engineFaults])
  const folders = speechFolders(config)
  if (runtimeEntry(folders.runtime) === null) await installRuntime(localRuntime(config, 'speech'))
  const runtime = runtimeEntry(folders.runtime)
  if (runtime === null) {
    throw new StartError(`The runtime was installed but is not in ${folders.runtime}.`)
  }
  if (given.options.runtime) return 0
  const { name, bytes } = await installFromHub(config, {
    repository: given.model ?? defaultModel.name,
    revision: given.options.revision,
    files: modelGlobs,
    choose: preferSmall,
  })
  const model = findModel(folders.models, name)
  if (model === null) {
    throw new StartError(
      `${name} was installed but is no speech model: it has no encoder, decoder and tokens.`,
    )
  }
  const recogniser = new Recogniser({
    name: 'verification',
    runtime,
    model,
    threads: 1,
    loadMax: 1,
    loadMs,
    idleMs: 0,
    deps: { log: silent, environment: programEnvironment() },
  })
  try {
    await recogniser.load()
  } catch (error) {
    throw doesNotWork(name, error)
  } finally {
    await recogniser.close()
  }
  const used = findModel(folders.models, undefined)?.name
  const effect =
    used === name
      ? 'A running gateway without [[engine]] uses it for new sessions.'
      : `New sessions use ${used}, which was installed later; an [[engine]] with kind = "local" and model = "${name}" uses this one.`
  process.stdout.write(
    `${name} recognises ${model.languages.join(', ')} (${Math.round(bytes / 1e6)} MB). ${effect}\n`,
  )
  return 0
}

/** Of each part the 8-bit version, if there is one. */
function preferSmall(files: readonly RemoteFile[]): readonly RemoteFile[] {
  const small = new Set(
    files.flatMap(({ path }) => (path.endsWith('.int8.onnx') ? [path.slice(0, -10)] : [])),
  )
  return files.filter(
    ({ path }) => path.endsWith('.int8.onnx') || !small.has(path.replace(/\.onnx$/, '')),
  )
}
