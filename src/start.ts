import { DatabaseStartError } from '#db/start-error.ts'
import { loadOrCreateDevSecret } from './auth/dev-secret.ts'
import { ArgumentError, readOptions } from './config/arguments.ts'
import { ConfigError, loadConfigFromProcess } from './config/load.ts'
import type { Config } from './config/schema.ts'
import { upstreamFaults } from './inference/upstreams/index.ts'
import { openProcessLog } from './process-log.ts'
import { engineFaults } from './speech/engines/registry.ts'
import { StartError } from './start-error.ts'

// `bun start` runs the supervisor, which runs main.ts again for each worker. Each role imports only
// what it needs, so the supervisor stays small.
const isWorker = process.argv[2] === 'worker'
const isFirstStart = process.argv[3] === 'first'
const workerIndex = Number(process.argv[4] ?? 0)

const usage = `
Usage: bun start

Serves the gateway, by default on http://127.0.0.1:8080 with an embedded database in ./data.
Configuration comes from ./sluice.toml (or the file of SLUICE_CONFIG) and from environment variables
such as HOST, PORT, DATABASE_URL and SLUICE_UPSTREAM_URL; docs/configuration.md lists all of them.

Other commands, each with --help:
  bun run config   prints the effective configuration
  bun run doctor   checks that every dependency is reachable
  bun run token    prints a development token`

const program = {
  usage,
  options: {},
  variables: {
    host: 'HOST',
    port: 'PORT',
    config: 'SLUICE_CONFIG',
    data: 'SLUICE_DATA',
    workers: 'SLUICE_WORKERS',
    'database-url': 'DATABASE_URL',
  },
}

/** Runs the supervisor or a worker; resolves with the exit code of the process. */
export async function start(): Promise<number> {
  try {
    if (!isWorker && readOptions(process.argv.slice(2), program) === null) return 0
    const loaded = loadConfigFromProcess([upstreamFaults, engineFaults])
    const { config, isDevelopment } = withDevelopmentDefaults(loaded)
    return await runRole(config, { isDevelopment, configuredHost: loaded.host })
  } catch (error) {
    const isForOperator =
      error instanceof ArgumentError ||
      error instanceof ConfigError ||
      error instanceof DatabaseStartError ||
      error instanceof StartError
    process.stderr.write(`${isForOperator ? error.message : Bun.inspect(error)}\n`)
    return 1
  }
}

async function runRole(
  config: Config,
  start: { isDevelopment: boolean; configuredHost: string },
): Promise<number> {
  const { log, flush } = openProcessLog(config)
  process.on('unhandledRejection', (error) => log.error('unhandled rejection', { error }))
  process.on('uncaughtException', (error) => log.error('uncaught exception', { error }))
  try {
    if (isWorker) {
      const { serve } = await import('./worker.ts')
      await serve(
        { ...config, workerIndex },
        { log, printGreeting: start.isDevelopment && isFirstStart },
      )
      return 0
    }
    for (const { name, use } of config.formerNames) {
      log.warn('configuration key deprecated', { key: name, use })
    }
    if (start.configuredHost !== config.host) {
      log.warn('no JWT_SECRET and no JWT_JWKS_URL: listening on loopback only', {
        host: config.host,
      })
    }
    const { supervise } = await import('./supervisor.ts')
    return await supervise(config, log)
  } finally {
    await flush()
  }
}

/** Without an identity provider: a generated secret, and loopback only. */
function withDevelopmentDefaults(config: Config): { config: Config; isDevelopment: boolean } {
  const { jwt } = config
  if (jwt.secret !== undefined || jwt.jwksUrl !== undefined) return { config, isDevelopment: false }
  const loopback = /^(127(\.\d+){3}|::1|localhost)$/
  const host = loopback.test(config.host) ? config.host : '127.0.0.1'
  return {
    config: { ...config, host, jwt: { ...jwt, secret: loadSecret(config) } },
    isDevelopment: true,
  }
}

function loadSecret({ data }: Config): string {
  try {
    return loadOrCreateDevSecret(data)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartError(`The development secret cannot be stored in ${data}: ${reason}`, {
      cause: error,
    })
  }
}
