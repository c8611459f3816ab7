import { ConfigError, loadConfigFromProcess, redactConfig, toFileKeys } from './config/load.ts'
import { upstreamFaults } from './inference/upstreams/index.ts'
import { engineFaults } from './speech/engines/registry.ts'

// `bun run config`: the effective configuration, without its secrets.
try {
  const config = loadConfigFromProcess([upstreamFaults, engineFaults])
  process.stdout.write(`${JSON.stringify(toFileKeys(redactConfig(config)), null, 2)}\n`)
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
