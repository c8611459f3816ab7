import { readOptions } from './config/arguments.ts'
import { loadConfigFromProcess } from './config/load.ts'
import { configSchema } from './config/schema.ts'
import { redactConfig } from './config/secrets.ts'
import { toFileKeys } from './config/spelling.ts'
import { upstreamFaults } from './inference/upstreams/index.ts'
import { commandLine } from './lib/own-program.ts'
import { engineFaults } from './speech/engines/registry.ts'

const usage = `
Usage: ${commandLine('config')}

Prints the effective configuration as JSON with the keys of the file, without secrets.`

/** The command `config`. */
export async function printConfig(args: readonly string[]): Promise<number> {
  if (readOptions(args, { usage, options: {} }) === null) return 0
  const config = loadConfigFromProcess([upstreamFaults, engineFaults])
  process.stdout.write(
    `${JSON.stringify(toFileKeys(configSchema, redactConfig(config)), null, 2)}\n`,
  )
  return 0
}
