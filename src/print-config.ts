import { ArgumentError, readOptions } from './config/arguments.ts'
import { ConfigError, loadConfigFromProcess, redactConfig, toFileKeys } from './config/load.ts'
import { upstreamFaults } from './inference/upstreams/index.ts'
import { engineFaults } from './speech/engines/registry.ts'

const usage = `
Usage: bun run config

Prints the effective configuration as JSON with the keys of the file, without secrets.`

// `bun run config`: the effective configuration, without its secrets.
try {
  if (readOptions(Bun.argv.slice(2), { usage, options: {} }) !== null) print()
} catch (error) {
  if (!(error instanceof ConfigError || error instanceof ArgumentError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

function print(): void {
  const config = loadConfigFromProcess([upstreamFaults, engineFaults])
  process.stdout.write(`${JSON.stringify(toFileKeys(redactConfig(config)), null, 2)}\n`)
}
