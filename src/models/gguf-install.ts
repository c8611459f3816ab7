import { loadConfigFromProcess } from '#config/load.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { packageFault } from '#inference/upstreams/llama/package.ts'
import { installFromHub, readModelArguments } from '#installer/install-command.ts'
import { commandLine } from '#lib/own-program.ts'
import { engineFaults } from '#speech/engines/registry.ts'
import { chooseGguf, defaultModel } from './gguf-models.ts'
import { llamaFolder } from './llama-config.ts'
import { installLlama } from './llama-install.ts'

const usage = `
Usage: ${commandLine('model install')} [model] [--file GLOB] [--revision main]

Installs the runtime of local models, if it is missing, and a GGUF model of the hub
(installer.hub_url). Default: ${defaultModel.name}. Of several quantisations it takes
Q4_K_M or the next one to it; --file selects another: --file '*Q8_0*'.`

/** The command `model install`. */
export async function installModel(args: readonly string[]): Promise<number> {
  const given = readModelArguments(args, {
    usage,
    options: { file: { type: 'string' }, revision: { type: 'string', default: 'main' } },
  })
  if (given === null) return 0
  const { file, revision } = given.options
  const config = loadConfigFromProcess([upstreamFaults, engineFaults])
  if (packageFault(llamaFolder(config)) !== null) await installLlama([])
  const { name, bytes } = await installFromHub(config, {
    repository: given.model ?? defaultModel.name,
    revision,
    files: [file ?? '*.gguf'],
    ...(file === undefined ? { choose: chooseGguf } : {}),
  })
  process.stdout.write(
    `${name} is installed (${Math.round(bytes / 1e6)} MB). A running gateway offers it within a minute.\n`,
  )
  return 0
}
