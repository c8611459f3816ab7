import { loadOrCreateDevSecret } from './auth/dev-secret.ts'
import { readOptions } from './config/arguments.ts'
import { loadConfigFromProcess } from './config/load.ts'
import type { Config } from './config/schema.ts'
import { upstreamFaults } from './inference/upstreams/index.ts'
import { commandLine } from './lib/own-program.ts'
import { openProcessLog } from './process-log.ts'
import { engineFaults } from './speech/engines/registry.ts'
import { StartError } from './start-error.ts'
import type { Log } from './telemetry/log.ts'
import { readServedCertificate } from './tls/certificate.ts'

const usage = `
Usage: ${commandLine('serve')}

Serves the gateway, by default on http://127.0.0.1:8080 with an embedded database in ./data.
Configuration comes from ./sluice.toml (or the file of SLUICE_CONFIG) and from environment variables
such as HOST, PORT, DATABASE_URL and SLUICE_UPSTREAM_URL; docs/configuration.md lists all of them.

--help prints this, ${commandLine('config')} the effective configuration.`

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

/** Runs the supervisor, which starts a process for each worker; resolves with the exit code. */
export async function start(args: readonly string[]): Promise<number> {
  if (readOptions(args, program) === null) return 0
  return runWithLog(async (config, { log, configuredHost }) => {
    for (const { name, use } of config.formerNames) {
      log.warn('configuration key deprecated', { key: name, use })
    }
    if (configuredHost !== config.host) {
      log.warn('no JWT_SECRET and no JWT_JWKS_URL: listening on loopback only', {
        host: config.host,
      })
    }
    // Each process imports only what it needs, so the supervisor stays small.
    // A mistake in the files is reported once, not by each worker.
    await readServedCertificate(config.tls)
    const { supervise } = await import('./supervisor.ts')
    return supervise(config, log)
  })
}

/** Runs a worker; the first argument is `first` or `other`, the second its index. */
export async function startWorker([role, index = '0']: readonly string[]): Promise<number> {
  return runWithLog(async (config, { log, isDevelopment }) => {
    const { serve } = await import('./worker.ts')
    const printGreeting = isDevelopment && role === 'first'
    await serve({ ...config, workerIndex: Number(index) }, { log, printGreeting })
    return 0
  })
}

type RunConfig = { log: Log; isDevelopment: boolean; configuredHost: string }

async function runWithLog(
  run: (config: Config, context: RunConfig) => Promise<number>,
): Promise<number> {
  const loaded = loadConfigFromProcess([upstreamFaults, engineFaults])
  const { config, isDevelopment } = withDevelopmentDefaults(loaded)
  const { log, flush } = openProcessLog(config)
  process.on('unhandledRejection', (error) => log.error('unhandled rejection', { error }))
  process.on('uncaughtException', (error) => log.error('uncaught exception', { error }))
  try {
    return await run(config, { log, isDevelopment, configuredHost: loaded.host })
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
