import { readOptions } from '#config/arguments.ts'
import { computeEnvironment, loadConfigFromProcess } from '#config/load.ts'
import { createFlite } from '#inference/upstreams/flite/adapter.ts'
import { packageFault, packageName, packageVersion } from '#inference/upstreams/flite/package.ts'
import { voices } from '#inference/upstreams/flite/wire.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { installRuntime } from '#install-packages.ts'
import { commandLine } from '#lib/own-program.ts'
import { localRuntime } from '#local-runtimes.ts'
import { engineFaults } from '#speech/engines/registry.ts'
import { doesNotWork } from '#start-error.ts'
import { fliteFolder } from './flite-config.ts'

const usage = `
Usage: ${commandLine('voice install')}

Installs Flite with its English voices (BSD) and encoders for MP3 (LAME, LGPL) and Opus (BSD) into the
data folder, and verifies them.`

/** The command `voice install`. */
export async function installVoice(args: readonly string[]): Promise<number> {
  if (readOptions(args, { usage, options: {} }) === null) return 0
  const config = loadConfigFromProcess([upstreamFaults, engineFaults])
  const packageFolder = fliteFolder(config)
  if (packageFault(packageFolder) !== null) await installRuntime(localRuntime(config, 'voice'))
  const flite = createFlite({
    settings: { ...config.flite, packageFolder },
    environment: computeEnvironment(config),
    log: { warn() {} },
  })
  try {
    await flite.verify()
  } catch (error) {
    throw doesNotWork(packageName, error)
  } finally {
    await flite.close()
  }
  process.stdout.write(
    `${packageName} ${packageVersion} speaks as ${voices.join(', ')}.\n` +
      'A running gateway offers the model "flite" within a minute.\n',
  )
  return 0
}
