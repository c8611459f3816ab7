import { DatabaseStartError } from '#db/start-error.ts'
import { loadOrCreateDevSecret } from './auth/dev-secret.ts'
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

/** Runs the supervisor or a worker; resolves with the exit code of the process. */
export async function start(): Promise<number> {
  try {
    const loaded = loadConfigFromProcess([upstreamFaults, engineFaults])
    const { config, isDevelopment } = withDevelopmentDefaults(loaded)
    return await runRole(config, { isDevelopment, configuredHost: loaded.host })
  } catch (error) {
    const isForOperator =
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
      await serve(config, { log, printGreeting: start.isDevelopment && isFirstStart })
      return 0
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
