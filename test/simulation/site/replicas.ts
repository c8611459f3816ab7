import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '#test/support/free-port.ts'
import {
  childrenOf,
  type GatewayProcess,
  isAlive,
  jwtSecret,
  killProcess,
  startGatewayProcess,
} from '#test/support/process.ts'
import type { ModelServer } from './model-server.ts'

/** A gateway process with its workers, which can be started again on the same port. */
export type Replica = {
  readonly name: string
  readonly url: string
  readonly port: number
  workers(): number[]
  /** All processes of it so far, the present one last. */
  readonly runs: readonly GatewayProcess[]
  /** Of this version, or of the one in another folder. */
  start(project?: string): Promise<void>
  /** Resolves with the exit code. */
  stop(): Promise<number>
  /** Kills the supervisor; its workers finish their streams and end. */
  killSupervisor(): Promise<void>
}

export const workersEach = 2
/** How long a stopping gateway waits for running requests. */
export const drainMs = 8_000

export type ReplicaOptions = {
  readonly names: readonly string[]
  readonly databaseUrl: string
  readonly dataFolder: string
  readonly temporaryFolder: string
  readonly configFolder: string
  readonly upstreams: readonly ModelServer[]
  readonly workers?: number
  /** How long requests wait for a query; by default two seconds, as without tests. */
  readonly databaseWaitMs?: number
  /** The configuration file, instead of that of the simulation. */
  readonly settings?: string
  /** The folder of another version. */
  readonly project?: string
}

export async function startReplicas(options: ReplicaOptions): Promise<Replica[]> {
  const config = join(options.configFolder, 'sluice.toml')
  writeFileSync(config, options.settings ?? configOf(options.upstreams))
  const replicas = options.names.map((name) => createReplica(name, config, options))
  for (const replica of replicas) await replica.start(options.project)
  return replicas
}

function createReplica(name: string, config: string, options: ReplicaOptions): Replica {
  const port = freePort()
  const workers = options.workers ?? workersEach
  const runs: GatewayProcess[] = []
  const current = () => {
    const run = runs.at(-1)
    if (run === undefined) throw new Error(`${name} was not started`)
    return run
  }
  return {
    name,
    url: `http://127.0.0.1:${port}`,
    port,
    runs,
    workers: () => childrenOf(current().pid).filter(isAlive),
    async start(project) {
      const run = await startGatewayProcess({
        ...(project === undefined
          ? {}
          : { command: [process.execPath, join(project, 'src/main.ts')] }),
        dataFolder: options.dataFolder,
        environment: {
          PORT: String(port),
          DATABASE_URL: options.databaseUrl,
          SLUICE_CONFIG: config,
          SLUICE_WORKERS: String(workers),
          SLUICE_DATABASE_WAIT_MS: String(options.databaseWaitMs ?? 2_000),
          TMPDIR: options.temporaryFolder,
          JWT_SECRET: jwtSecret,
          LOG_LEVEL: 'info',
          // Earlier versions do not know it.
          SLUICE_COMPUTE_NICE: undefined,
        },
      })
      runs.push(run)
      await run.logged('listening', workers)
    },
    async stop() {
      current().signal('SIGTERM')
      return current().exited
    },
    async killSupervisor() {
      killProcess(current().pid)
      await current().exited
    },
  }
}

/** All limits are on; deadlines are short, so that a black hole costs seconds. */
function configOf(upstreams: readonly ModelServer[]): string {
  const names = JSON.stringify(upstreams.map(({ name }) => name))
  const entries = upstreams.map(
    ({ name, url }) =>
      `[[upstream]]\nname = "${name}"\nurl = "${url}"\nmodels = ["chat"]\nmax_in_flight = 16\n`,
  )
  return `${entries.join('')}
[[model]]
name = "embedder"
mode = "embed"
upstreams = ${names}

[[model]]
name = "ranker"
mode = "rerank"
upstreams = ${names}

[deadlines]
connect_ms = 1000
first_event_ms = 4000
gap_ms = 4000
total_ms = 20000

[webhooks]
private_hosts = ["127.0.0.1"]

[drain]
grace_ms = ${drainMs}

[responses]
lost_after_ms = 3000
frozen_max_ms = 20000
abandon_ms = 5000

[retrieval]
embedding_model = "embedder"

[limits.default]
requests_per_minute = 100_000
concurrent_generations = 100
speech_sessions = 50
stored_bytes = 1_000_000_000

[budgets.default]
tokens_per_day = 1_000_000_000

[prices.chat]
input_per_million = 1
output_per_million = 2
`
}
