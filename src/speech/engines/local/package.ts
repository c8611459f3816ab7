import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '#config/schema.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { commandLine } from '#lib/own-program.ts'
import type { SpeechFolders } from '#speech/engines/engine-kind.ts'

/**
 * The runtime of local speech recognition: sherpa-onnx with ONNX Runtime, 32 MB. It is not a
 * dependency; `speech install` puts it into a folder of its own.
 */
export const packageName = 'sherpa-onnx-node'
export const packageVersion = '1.13.8'
export const installCommand = commandLine('speech install')

/** Absolute, because the process of a model has another working directory. */
export function speechFolders(config: Pick<Config, 'data' | 'installer'>): SpeechFolders {
  return {
    models: resolve(config.installer.folder ?? join(config.data, 'models')),
    runtime: resolve(join(config.data, 'sherpa')),
  }
}

/** The packages to install on a platform; empty if it is not supported. */
export function runtimePackages({ platform, arch }: { platform: string; arch: string }) {
  const native = nativePackage(platform, arch)
  return native === null ? [] : [packageName, native].map((name) => `${name}@${packageVersion}`)
}

/** The entry point of the runtime; null if it is not installed in this version. */
export function runtimeEntry(folder: string): string | null {
  const path = join(folder, 'node_modules', packageName)
  try {
    const described = parseJson(readFileSync(join(path, 'package.json'), 'utf8'))
    if (!isRecord(described) || described['version'] !== packageVersion) return null
  } catch {
    return null
  }
  const entry = join(path, 'sherpa-onnx.js')
  return existsSync(entry) ? entry : null
}

function nativePackage(platform: string, arch: string): string | null {
  const known = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64', 'win32-x64']
  if (!known.includes(`${platform}-${arch}`)) return null
  return `sherpa-onnx-${platform === 'win32' ? 'win' : platform}-${arch}`
}
