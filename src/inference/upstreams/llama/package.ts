import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '#lib/errors.ts'
import { isRecord, parseJson } from '#lib/json.ts'

/**
 * The package that brings llama.cpp. It is no dependency of ours, because with all that it may bring
 * it is larger than everything else together; whoever wants it installs it into a folder of its own.
 */
export const packageName = 'node-llama-cpp'
/** The only version that is loaded: we use more of it than its major number promises to keep. */
export const packageVersion = '3.22.1'
export const installCommand = 'bun run llama:install'

/** The version that is installed in a folder; null where there is none. */
function installedVersion(folder: string): string | null {
  try {
    const described = parseJson(readFileSync(join(packagePath(folder), 'package.json'), 'utf8'))
    const version = isRecord(described) ? described['version'] : undefined
    return typeof version === 'string' ? version : null
  } catch {
    return null
  }
}

/** What is imported of it. */
export function entryPath(folder: string): string {
  return join(packagePath(folder), 'dist', 'index.js')
}

/** Why no installed model can run, or null where one can. */
export function packageFault(folder: string): AppError | null {
  const version = installedVersion(folder)
  if (version === packageVersion) return null
  const state =
    version === null
      ? 'what runs them is not installed'
      : `${packageName} ${version} is installed, and ${packageVersion} is needed`
  return new AppError(
    'service_unavailable',
    `Models on this machine cannot be run: ${state}. The operator installs it with: ${installCommand}`,
    { param: 'model' },
  )
}

/** The parts of the package that a platform needs; empty where there are none for it. */
export function platformPackages(
  { platform, arch }: { platform: string; arch: string },
  withGpu: boolean,
): readonly string[] {
  const key = `${platform}-${arch}`
  const names = [...(plainParts[key] ?? []), ...(withGpu ? (gpuParts[key] ?? []) : [])]
  return names.map((name) => `@node-llama-cpp/${name}`)
}

/** By the names that Node has for platforms. On a Mac the graphics processor comes with the rest. */
const plainParts: Readonly<Record<string, readonly string[]>> = {
  'linux-x64': ['linux-x64'],
  'linux-arm64': ['linux-arm64'],
  'linux-arm': ['linux-armv7l'],
  'linux-riscv64': ['linux-riscv64'],
  'darwin-arm64': ['mac-arm64-metal'],
  'darwin-x64': ['mac-x64'],
  'win32-x64': ['win-x64'],
  'win32-arm64': ['win-arm64'],
}

const gpuParts: Readonly<Record<string, readonly string[]>> = {
  'linux-x64': ['linux-x64-cuda', 'linux-x64-cuda-ext', 'linux-x64-vulkan'],
  'win32-x64': ['win-x64-cuda', 'win-x64-cuda-ext', 'win-x64-vulkan'],
}

function packagePath(folder: string): string {
  return join(folder, 'node_modules', packageName)
}
