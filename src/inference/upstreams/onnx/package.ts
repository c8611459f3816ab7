import { join } from 'node:path'
import { installedVersion, packagePath } from '#inference/local-models/installed-package.ts'
import { AppError } from '#lib/errors.ts'
import { commandLine } from '#lib/own-program.ts'

/**
 * The runtime of embedding and rerank models. It is not a dependency, because its native library is a
 * third of the size of all dependencies; operators install it into a separate folder.
 */
export const packageName = 'onnxruntime-node'
export const packageVersion = '1.30.0'
export const installCommand = commandLine('embed install')

/** The entry point of the package. */
export function entryPath(folder: string): string {
  return join(packagePath(folder, packageName), 'dist', 'index.js')
}

/** Where the package keeps its native libraries: a folder per platform and processor. */
export function binariesPath(folder: string): string {
  return join(packagePath(folder, packageName), 'bin', 'napi-v6')
}

/** The reason why embedding models cannot run; null if they can. */
export function packageFault(folder: string): AppError | null {
  const version = installedVersion(folder, packageName)
  if (version === packageVersion) return null
  const state =
    version === null
      ? 'their runtime is not installed'
      : `${packageName} ${version} is installed, but ${packageVersion} is required`
  return new AppError(
    'service_unavailable',
    `Local embedding models cannot run: ${state}. The operator installs it with: ${installCommand}`,
    { param: 'model' },
  )
}
