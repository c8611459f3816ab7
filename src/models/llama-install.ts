import { readOptions } from '#config/arguments.ts'
import { loadConfigFromProcess } from '#config/load.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { loadPackage } from '#inference/upstreams/llama/child-model.ts'
import { entryPath, packageName, packageVersion } from '#inference/upstreams/llama/package.ts'
import { installRuntime } from '#install-packages.ts'
import { commandLine } from '#lib/own-program.ts'
import { llamaPackages, localRuntime } from '#local-runtimes.ts'
import { engineFaults } from '#speech/engines/registry.ts'
import { doesNotWork } from '#start-error.ts'
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
  const config = loadConfigFromProcess([upstreamFaults, engineFaults])
  const folder = llamaFolder(config)
  await installRuntime({ ...localRuntime(config, 'llama'), packages: llamaPackages(gpu) })
  const processor = await verify(folder, gpu)
  process.stdout.write(
    `${packageName} ${packageVersion} is in ${folder} and runs models on the ${processor}.\n` +
      'Installed GGUF models are available from now on; a running gateway detects it.\n',
  )
  return 0
}

async function verify(folder: string, gpu: boolean): Promise<string> {
  try {
    const { llama } = await loadPackage({ packageEntry: entryPath(folder), gpu, threads: 1 })
    const found = llama.gpu
    await llama.dispose()
    return found === false ? 'CPU' : `GPU (${found})`
  } catch (error) {
    throw doesNotWork(packageName, error)
  }
}
