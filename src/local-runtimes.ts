import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config/schema.ts'
import { installedVersion, packagePath } from './inference/local-models/installed-package.ts'
import * as flite from './inference/upstreams/flite/package.ts'
import * as llama from './inference/upstreams/llama/package.ts'
import * as onnx from './inference/upstreams/onnx/package.ts'
import type { LocalRuntime } from './installer/runtime.ts'
import { commandLine } from './lib/own-program.ts'
import { fliteFolder } from './models/flite-config.ts'
import { defaultModel as defaultGguf } from './models/gguf-models.ts'
import { llamaFolder } from './models/llama-config.ts'
import { onnxFolder } from './models/onnx-config.ts'
import { defaultModels, defaultWeights, onnxSettings } from './models/onnx-weights.ts'
import {
  findMpg123,
  mpg123Folder,
  mpg123Package,
  mpg123Version,
} from './speech/decoders/mpg123-package.ts'
import { defaultModel as defaultSpeech } from './speech/engines/local/model-files.ts'
import * as sherpa from './speech/engines/local/package.ts'
import { StartError } from './start-error.ts'

const { platform, arch } = process

/**
 * What this machine can run itself: the only list of runtimes. The commands, the greeting, the API and the
 * console use it. Sizes are those of Linux x64.
 */
export function localRuntimes(config: Config): readonly LocalRuntime[] {
  return [
    {
      name: 'llama',
      purpose: 'a small language model',
      command: 'model install',
      package: llama.packageName,
      version: llama.packageVersion,
      license: 'MIT',
      bytes: 80_000_000,
      downloadBytes: 80_000_000,
      folder: llamaFolder(config),
      packages: llamaPackages(hasGpuPackages(llamaFolder(config))),
      installedVersion: installedVersion(llamaFolder(config), llama.packageName),
      isEnabled: config.llama.enabled,
      model: { repository: defaultGguf.name, files: ['*.gguf'], bytes: defaultGguf.bytes },
    },
    {
      name: 'embed',
      purpose: 'search by meaning in documents',
      command: 'embed install',
      package: onnx.packageName,
      version: onnx.packageVersion,
      license: 'MIT',
      bytes: 48_000_000,
      // It contains every platform.
      downloadBytes: 302_000_000,
      folder: onnxFolder(config),
      packages: [`${onnx.packageName}@${onnx.packageVersion}`],
      installedVersion: installedVersion(onnxFolder(config), onnx.packageName),
      isEnabled: config.onnx.enabled,
      finish: removeOtherPlatforms,
      model: {
        repository: defaultModels.embed,
        files: [...onnxSettings, defaultWeights],
        bytes: 135_000_000,
      },
    },
    {
      name: 'speech',
      purpose: 'speech recognition',
      command: 'speech install',
      package: sherpa.packageName,
      version: sherpa.packageVersion,
      license: 'Apache-2.0',
      bytes: 33_000_000,
      downloadBytes: 33_000_000,
      folder: sherpa.speechFolders(config).runtime,
      packages: sherpa.runtimePackages({ platform, arch }),
      installedVersion: installedVersion(sherpa.speechFolders(config).runtime, sherpa.packageName),
      isEnabled: true,
      model: {
        repository: defaultSpeech.name,
        files: ['*.int8.onnx', '*tokens.txt'],
        bytes: defaultSpeech.megabytes * 1_000_000,
      },
    },
    {
      name: 'voice',
      purpose: 'speaking texts (English)',
      command: 'voice install',
      package: flite.packageName,
      version: flite.packageVersion,
      license: 'BSD-4-Clause; encoders: MIT with LAME (LGPL-2.0-or-later), libopus (BSD-3-Clause)',
      bytes: 26_000_000,
      downloadBytes: 26_000_000,
      folder: fliteFolder(config),
      packages: flite.packages,
      installedVersion:
        flite.packageFault(fliteFolder(config)) === null ? flite.packageVersion : null,
      isEnabled: config.flite.enabled,
      model: null,
    },
    {
      name: 'mp3',
      purpose: 'recognising MP3 audio',
      command: 'mp3 install',
      package: mpg123Package,
      version: mpg123Version,
      license: 'LGPL-2.1-only',
      bytes: 371_000,
      downloadBytes: 371_000,
      folder: mpg123Folder(config.data),
      packages: [`${mpg123Package}@${mpg123Version}`],
      // A checkout and the npm package contain it.
      installedVersion: findMpg123() === null ? null : mpg123Version,
      isEnabled: true,
      model: null,
    },
  ]
}

/** Throws if the table has no such row. */
export function localRuntime(config: Config, name: string): LocalRuntime {
  const found = localRuntimes(config).find((runtime) => runtime.name === name)
  if (found === undefined) throw new Error(`no runtime "${name}"`)
  return found
}

/** A line for each runtime that is not installed; empty if all are. */
export function missingRuntimeLines(config: Config): readonly string[] {
  const missing = localRuntimes(config).filter(
    ({ isEnabled, version, installedVersion }) => isEnabled && installedVersion !== version,
  )
  const width = Math.max(...missing.map(({ command }) => commandLine(command).length))
  return missing.map(
    ({ command, purpose }) => `  ${commandLine(command).padEnd(width)}  ${purpose}`,
  )
}

/** Empty on a platform without llama.cpp. */
export function llamaPackages(withGpu: boolean): readonly string[] {
  const parts = llama.platformPackages({ platform, arch }, withGpu)
  const names = parts.length === 0 ? [] : [llama.packageName, ...parts]
  return names.map((name) => `${name}@${llama.packageVersion}`)
}

/** Whether an installation was made with GPU support, which a newer version keeps. */
function hasGpuPackages(folder: string): boolean {
  const [cpu, withGpu] = [false, true].map((gpu) => llama.platformPackages({ platform, arch }, gpu))
  return (withGpu ?? []).some(
    (name) => cpu?.includes(name) !== true && existsSync(packagePath(folder, name)),
  )
}

/** The libraries of other platforms are four fifths of the package. */
function removeOtherPlatforms(folder: string): void {
  const binaries = onnx.binariesPath(folder)
  for (const name of readdirSync(binaries)) {
    if (name !== platform) rmSync(join(binaries, name), { recursive: true })
  }
  const own = join(binaries, platform)
  const processors = readdirSync(binaries).includes(platform) ? readdirSync(own) : []
  for (const name of processors) {
    if (name !== arch) rmSync(join(own, name), { recursive: true })
  }
  if (!processors.includes(arch)) {
    throw new StartError(`There is no ${onnx.packageName} for ${platform} on ${arch}.`)
  }
}
