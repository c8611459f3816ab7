import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import {
  basicEnvironment,
  freePort,
  logTail,
  startChild,
  temporaryFolder,
  waitUntil,
} from './children.ts'
import type { Protocol } from './mock-frames.ts'
import { modelName } from './plan.ts'

export type Gateway = {
  readonly port: number
  /** The supervisor; its workers are its children. */
  readonly pid: number
  readonly bearer: string
}

export type GatewayOptions = {
  readonly upstreamPort: number
  readonly upstreamApi: Protocol
  /** postgres://… ; without it PGlite in a temporary folder. */
  readonly databaseUrl?: string | undefined
  /** The total deadline of a generation, where the default of 600 s is too short. */
  readonly totalDeadlineMs?: number
  readonly logLevel?: string
  /** Further lines of the configuration file. */
  readonly configLines?: string
}

const startDeadlineMs = 60_000
const secret = 'a secret of the benches, which guards nothing at all'
const projectRoot = join(import.meta.dir, '..', '..')

/** Starts Sluice as an operator would, with authentication on and an empty database. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const folder = temporaryFolder()
  const port = freePort()
  const logFile = join(folder, 'gateway.log')
  const configFile = join(folder, 'sluice.toml')
  mkdirSync(join(folder, 'data'))
  writeFileSync(configFile, configuration(options))
  const child = startChild([process.execPath, 'src/main.ts'], {
    cwd: projectRoot,
    logFile,
    env: {
      ...basicEnvironment(),
      HOST: '127.0.0.1',
      PORT: String(port),
      SLUICE_CONFIG: configFile,
      SLUICE_DATA: join(folder, 'data'),
      SLUICE_UPSTREAM_URL: `http://127.0.0.1:${options.upstreamPort}/v1`,
      SLUICE_UPSTREAM_API: options.upstreamApi,
      SLUICE_DRAIN_MS: '1000',
      JWT_SECRET: secret,
      LOG_LEVEL: options.logLevel ?? 'info',
      ...(options.databaseUrl === undefined ? {} : { DATABASE_URL: options.databaseUrl }),
    },
  })
  const bearer = await signToken()
  await waitUntil({
    child,
    deadlineMs: startDeadlineMs,
    isReady: () => listsTheModel(port, bearer),
    explain: () => `the gateway does not answer:\n${logTail(logFile)}`,
  })
  return { port, pid: child.pid, bearer }
}

function configuration(options: GatewayOptions): string {
  const deadlines =
    options.totalDeadlineMs === undefined
      ? ''
      : `[deadlines]\ntotal_ms = ${options.totalDeadlineMs}\n`
  return deadlines + (options.configLines ?? '')
}

/** Ready is not enough: the upstream's model list is read in the background. */
async function listsTheModel(port: number, bearer: string): Promise<boolean> {
  const ready = await fetch(`http://127.0.0.1:${port}/readyz`)
  if (ready.status !== 200) return false
  const headers = { Authorization: `Bearer ${bearer}` }
  const models = await fetch(`http://127.0.0.1:${port}/v1/models`, { headers })
  return (await models.text()).includes(`"${modelName}"`)
}

function signToken(): Promise<string> {
  return new SignJWT({ groups: ['users'] })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('bench')
    .setIssuedAt()
    .setExpirationTime('3h')
    .sign(new TextEncoder().encode(secret))
}
