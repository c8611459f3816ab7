import { ConfigError, loadConfigFromProcess, redactConfig, toFileKeys } from './load.ts'

// `bun run config`: the effective configuration, without its secrets.
try {
  process.stdout.write(
    `${JSON.stringify(toFileKeys(redactConfig(loadConfigFromProcess([]))), null, 2)}\n`,
  )
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
