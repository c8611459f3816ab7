import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { freePort } from '#test/support/free-port.ts'
import {
  basicEnvironment,
  logTail,
  StartError,
  startChild,
  temporaryFolder,
  waitUntil,
} from './children.ts'
import { createDatabase } from './database.ts'
import { countListeners } from './listening-pid.ts'
import type { Protocol } from './mock-frames.ts'
import { withSettings } from './options.ts'
import { modelName } from './plan.ts'
import { readPort } from './ready-port.ts'

export type Gateway = {
  readonly port: number
  /** Process id of the supervisor. */
  readonly pid: number
  readonly bearer: string
  /** Output of supervisor and workers, which is the log. */
  readonly logFile: string
  /** A token of another user. */
  token(subject: string, groups: readonly string[]): Promise<string>
}

export type GatewayOptions = {
  readonly upstreamPort: number
  readonly upstreamApi: Protocol
  /** PostgreSQL server on which it gets a new database; default: PGlite in a temporary folder. */
  readonly databaseServer?: string | undefined
  /** URL of an existing database. */
  readonly databaseUrl?: string | undefined
  /** An existing data folder; default: a new one. */
  readonly dataFolder?: string
  /** Worker processes, default 1; more need a database server. */
  readonly workers?: number
  /** Open file limit of its processes; default: that of this process. */
  readonly openFilesMax?: number
  /** Total deadline of a generation; default 600 s. */
  readonly totalDeadlineMs?: number
  /**
   * Makes the garbage collector assume this memory size, so that retained memory can be distinguished from
   * garbage. Slower.
   */
  readonly gcMemoryBytes?: number
  readonly logLevel?: string
  /** Additional configuration lines. */
  readonly configLines?: string
  /** Values of `--set`, which take precedence. */
  readonly settings?: readonly string[]
}

/** Other work may keep the machine busy. */
const startDeadlineMs = 300_000
const secret = 'a secret of the benches, which guards nothing at all'
const projectRoot = join(import.meta.dir, '..', '..')

/** Starts Sluice as in production, with authentication and an empty database. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const folder = temporaryFolder()
  const port = freePort()
  const logFile = join(folder, 'gateway.log')
  const configFile = join(folder, 'sluice.toml')
  const dataFolder = options.dataFolder ?? join(folder, 'data')
  mkdirSync(dataFolder, { recursive: true })
  writeFileSync(configFile, configuration(options))
  const { databaseServer } = options
  const databaseUrl =
    databaseServer === undefined ? options.databaseUrl : await createDatabase(databaseServer)
  const child = startChild(commandOf(options), {
    cwd: projectRoot,
    logFile,
    env: {
      ...basicEnvironment(),
      HOST: '127.0.0.1',
      PORT: String(port),
      SLUICE_CONFIG: configFile,
      SLUICE_DATA: dataFolder,
      SLUICE_WORKERS: String(options.workers ?? 1),
      SLUICE_UPSTREAM_URL: `http://127.0.0.1:${options.upstreamPort}/v1`,
      SLUICE_UPSTREAM_API: options.upstreamApi,
      SLUICE_DRAIN_MS: '1000',
      JWT_SECRET: secret,
      LOG_LEVEL: options.logLevel ?? 'info',
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
      ...(options.gcMemoryBytes === undefined
        ? {}
        : { BUN_JSC_forceRAMSize: String(options.gcMemoryBytes) }),
    },
  })
  const bearer = await signToken('bench', ['users'])
  await waitUntil({
    child,
    deadlineMs: startDeadlineMs,
    isReady: async () => (await listsTheModel(port, bearer)) && everyWorkerListens(port, options),
    explain: () => `the gateway does not respond:\n${logTail(logFile)}`,
  })
  return { port, pid: child.pid, bearer, logFile, token: signToken }
}

/** Starts the smallest gateway that does the same for one pair of protocols: `bench/floor.ts`. */
export async function startFloor(
  upstreamPort: number,
): Promise<Omit<Gateway, 'logFile' | 'token'>> {
  const script = join(projectRoot, 'bench', 'floor.ts')
  const logFile = join(temporaryFolder(), 'floor.log')
  const child = startChild([process.execPath, script, String(upstreamPort), secret], {
    stdin: 'pipe',
    stderrFile: logFile,
  })
  const port = await readPort(child, script)
  return { port, pid: child.pid, bearer: await signToken('bench', ['users']) }
}

/** The shell that sets the limit execs the gateway. */
function commandOf({ openFilesMax }: GatewayOptions): string[] {
  const command = [process.execPath, 'src/main.ts']
  if (openFilesMax === undefined) return command
  return ['sh', '-c', `ulimit -n ${openFilesMax} && exec "$@"`, 'sh', ...command]
}

function configuration(options: GatewayOptions): string {
  const deadlines =
    options.totalDeadlineMs === undefined
      ? ''
      : `[deadlines]\ntotal_ms = ${options.totalDeadlineMs}\n`
  return withSettings(deadlines + (options.configLines ?? ''), options.settings)
}

function everyWorkerListens(port: number, { workers = 1 }: GatewayOptions): boolean {
  return workers === 1 || countListeners(port) === workers
}

/** Readiness is not enough: the upstream's model list is loaded in the background. */
async function listsTheModel(port: number, bearer: string): Promise<boolean> {
  const ready = await fetch(`http://127.0.0.1:${port}/readyz`)
  if (ready.status !== 200) return false
  const headers = { Authorization: `Bearer ${bearer}` }
  const models = await fetch(`http://127.0.0.1:${port}/v1/models`, { headers })
  return (await models.text()).includes(`"${modelName}"`)
}

function signToken(subject: string, groups: readonly string[]): Promise<string> {
  return new SignJWT({ groups: [...groups] })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(subject)
    .setIssuedAt()
    .setExpirationTime('3h')
    .sign(new TextEncoder().encode(secret))
}

/** Sum of all series of one metric of `GET /metrics`. */
async function readMetric(port: number, name: string): Promise<number> {
  const httpResponse = await fetch(`http://127.0.0.1:${port}/metrics`)
  const lines = (await httpResponse.text()).split('\n')
  const values = lines
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)))
  if (values.length === 0) throw new StartError(`the gateway has no metric ${name}`)
  return values.reduce((sum, value) => sum + value, 0)
}

/** Waits until no generation runs; returns how many still run at the deadline. */
export async function waitForIdle(port: number, deadlineMs: number): Promise<number> {
  const endMs = performance.now() + deadlineMs
  for (;;) {
    const running = await readMetric(port, 'sluice_generations_running')
    if (running === 0 || performance.now() > endMs) return running
    await Bun.sleep(50)
  }
}
