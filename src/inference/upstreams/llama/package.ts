import { join } from 'node:path'
import { installedVersion, packagePath } from '#inference/local-models/installed-package.ts'
import { AppError } from '#lib/errors.ts'
import { commandLine } from '#lib/own-program.ts'

/**
 * The package that contains llama.cpp. It is not a dependency, because it is larger than all other
 * dependencies together; operators install it into a separate folder.
 */
export const packageName = 'node-llama-cpp'
/** The only supported version: Sluice uses interfaces outside the package's compatibility promise. */
export const packageVersion = '3.22.1'
export const installCommand = commandLine('llama install')

/** The entry point of the package. */
export function entryPath(folder: string): string {
  return join(packagePath(folder, packageName), 'dist', 'index.js')
}

/** The reason why local models cannot run; null if they can. */
export function packageFault(folder: string): AppError | null {
  const version = installedVersion(folder, packageName)
  if (version === packageVersion) return null
  const state =
    version === null
      ? 'their runtime is not installed'
      : `${packageName} ${version} is installed, but ${packageVersion} is required`
  return new AppError(
    'service_unavailable',
    `Local models cannot run: ${state}. The operator installs it with: ${installCommand}`,
    { param: 'model' },
  )
}

/** The platform packages of a platform; empty if it is not supported. */
export function platformPackages(
  { platform, arch }: { platform: string; arch: string },
  withGpu: boolean,
): readonly string[] {
  const key = `${platform}-${arch}`
  const names = [...(cpuPackages[key] ?? []), ...(withGpu ? (gpuPackages[key] ?? []) : [])]
  return names.map((name) => `@node-llama-cpp/${name}`)
}

/** By Node's platform names. On macOS the package includes GPU support. */
const cpuPackages: Readonly<Record<string, readonly string[]>> = {
  'linux-x64': ['linux-x64'],
  'linux-arm64': ['linux-arm64'],
  'linux-arm': ['linux-armv7l'],
  'linux-riscv64': ['linux-riscv64'],
  'darwin-arm64': ['mac-arm64-metal'],
  'darwin-x64': ['mac-x64'],
  'win32-x64': ['win-x64'],
  'win32-arm64': ['win-arm64'],
}

const gpuPackages: Readonly<Record<string, readonly string[]>> = {
  'linux-x64': ['linux-x64-cuda', 'linux-x64-cuda-ext', 'linux-x64-vulkan'],
  'win32-x64': ['win-x64-cuda', 'win-x64-cuda-ext', 'win-x64-vulkan'],
}
