import { loadOrCreateDevSecret } from './auth/dev-secret.ts'
import { readOptions } from './config/arguments.ts'
import type { ConfigFile } from './config/config-file.ts'
import {
  ConfigError,
  configFileOfProcess,
  loadConfigFromProcess,
  ruleFaults,
} from './config/load.ts'
import { planReload } from './config/reload-plan.ts'
import type { Config } from './config/schema.ts'
import type { Hangups } from './hangups.ts'
import { upstreamFaults } from './inference/upstreams/index.ts'
import { messageOf } from './lib/error-message.ts'
import { commandLine } from './lib/own-program.ts'
import { openProcessLog } from './process-log.ts'
import { type CoordinatorDeps, createCoordinator } from './reload/coordinator.ts'
import type { ConfigFiles } from './reload/messages.ts'
import { openSupervisorLink } from './reload/supervisor-link.ts'
import { createWorkerReloads } from './reload/worker-reloads.ts'
import { engineFaults } from './speech/engines/registry.ts'
import { StartError } from './start-error.ts'
import type { Log } from './telemetry/log.ts'

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
export async function start(args: readonly string[], hangups: Hangups): Promise<number> {
  if (readOptions(args, program) === null) return 0
  const file = configFileOfProcess()
  return runWithLog({ started: file, accepted: file }, async (config, context) => {
    const { log, configuredHost, reloading, configureLog } = context
    for (const { name, use } of config.formerNames) {
      log.warn('configuration key deprecated', { key: name, use })
    }
    if (configuredHost !== config.host) {
      log.warn('no JWT_SECRET and no JWT_JWKS_URL: listening on loopback only', {
        host: config.host,
      })
    }
    // Each process imports only what it needs, so the supervisor stays small.
    const { supervise } = await import('./supervisor.ts')
    const coordinator = createCoordinator({ ...reloading, onAccepted: configureLog })
    return supervise(config, { log, coordinator, hangups })
  })
}

/** Runs a worker; the first argument is `first` or `other`, the second its index. */
export async function startWorker(
  [role, index = '0']: readonly string[],
  hangups: Hangups,
): Promise<number> {
  const link = openSupervisorLink()
  const own = configFileOfProcess()
  const files = (await link?.files) ?? { started: own, accepted: own }
  return runWithLog(files, async (startConfig, context) => {
    const { log, isDevelopment, reloading, configureLog } = context
    const config = { ...startConfig, workerIndex: Number(index) }
    const given = { ...reloading, config, link, onChanged: configureLog }
    const { serve } = await import('./worker.ts')
    const printGreeting = isDevelopment && role === 'first'
    await serve(config, { log, printGreeting, hangups, ...createWorkerReloads(given) })
    return 0
  })
}

type RunConfig = {
  log: Log
  isDevelopment: boolean
  configuredHost: string
  reloading: Omit<CoordinatorDeps, 'onAccepted'>
  configureLog: (config: Config) => void
}

const configChecks = [upstreamFaults, engineFaults]

/** A worker that starts after a reload has the keys of the start where a reload does not change them. */
async function runWithLog(
  files: ConfigFiles,
  run: (config: Config, context: RunConfig) => Promise<number>,
): Promise<number> {
  const load = (file: ConfigFile) => loadConfigFromProcess(configChecks, file)
  const loaded = load(files.started)
  const { config: started, isDevelopment } = withDevelopmentDefaults(loaded)
  const loadAgain = (file: ConfigFile) => {
    const again = withDevelopmentDefaults(load(file))
    if (isDevelopment || !again.isDevelopment) return again.config
    throw new ConfigError([
      'jwt.secret or jwt.jwks_url: required, unless the gateway starts again.',
    ])
  }
  const config =
    files.accepted.text === files.started.text
      ? started
      : planReload(started, loadAgain(files.accepted)).config
  const { log, configure: configureLog, flush } = openProcessLog(config)
  const faultsOf = (merged: Config) => ruleFaults(merged, configChecks)
  const readFile = configFileOfProcess
  const reloading = { files, config, readFile, load: loadAgain, faultsOf, log }
  process.on('unhandledRejection', (error) => log.error('unhandled rejection', { error }))
  process.on('uncaughtException', (error) => log.error('uncaught exception', { error }))
  try {
    const configuredHost = loaded.host
    return await run(config, { log, isDevelopment, configuredHost, reloading, configureLog })
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
    const reason = messageOf(error)
    throw new StartError(`The development secret cannot be stored in ${data}: ${reason}`, {
      cause: error,
    })
  }
}
