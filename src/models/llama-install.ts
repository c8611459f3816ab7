import { readOptions } from '#config/arguments.ts'
import { loadConfigFromProcess } from '#config/load.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { loadPackage } from '#inference/upstreams/llama/child-model.ts'
import {
  entryPath,
  packageName,
  packageVersion,
  platformPackages,
} from '#inference/upstreams/llama/package.ts'
import { installPackages } from '#install-packages.ts'
import { commandLine } from '#lib/own-program.ts'
import { engineFaults } from '#speech/engines/registry.ts'
import { StartError } from '#start-error.ts'
import { llamaFolder } from './llama-config.ts'

const usage = `
Usage: ${commandLine('llama install')} [--gpu]

Installs the local model runtime into the data folder and verifies it. --gpu adds CUDA and Vulkan.`

/**
 * The command `llama install`: installs the local model runtime from the package registry and verifies
 * it. `--gpu` includes GPU support, which is several hundred megabytes.
 */
export async function installLlama(args: readonly string[]): Promise<number> {
  const options = readOptions(args, {
    usage,
    options: { gpu: { type: 'boolean', default: false } },
  })
  if (options === null) return 0
  const { gpu } = options
  const folder = llamaFolder(loadConfigFromProcess([upstreamFaults, engineFaults]))
  await installPackages(folder, packagesFor(gpu))
  const processor = await verify(folder, gpu)
  process.stdout.write(
    `${packageName} ${packageVersion} is in ${folder} and runs models on the ${processor}.\n` +
      'Installed GGUF models are available from now on; a running gateway detects it.\n',
  )
  return 0
}

function packagesFor(withGpu: boolean): readonly string[] {
  const { platform, arch } = process
  const parts = platformPackages({ platform, arch }, withGpu)
  if (parts.length === 0)
    throw new StartError(`There is no ${packageName} for ${platform} on ${arch}.`)
  return [packageName, ...parts].map((name) => `${name}@${packageVersion}`)
}

async function verify(folder: string, gpu: boolean): Promise<string> {
  try {
    const { llama } = await loadPackage({ packageEntry: entryPath(folder), gpu, threads: 1 })
    const found = llama.gpu
    await llama.dispose()
    return found === false ? 'CPU' : `GPU (${found})`
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartError(`${packageName} was installed but does not work: ${reason}`)
  }
}
