import { ConfigError, loadConfigFromProcess, redactConfig, spellAsFile } from './load.ts'

// `bun run config`: the effective configuration, without its secrets.
try {
  process.stdout.write(
    `${JSON.stringify(spellAsFile(redactConfig(loadConfigFromProcess([]))), null, 2)}\n`,
  )
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
