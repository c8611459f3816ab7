import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { checkedFetch } from './checked-fetch.ts'
import { createTestPlace } from './database.ts'
import { helperTimeoutMs } from './time-limits.ts'

/** The gateway as an operator runs it: a supervisor and its workers, with pipes for its output. */
export type GatewayProcess = {
  readonly pid: number
  /** `http://127.0.0.1:<port>` once it listens. */
  readonly url: () => string
  readonly port: () => number
  readonly stdout: () => string
  readonly stderr: () => string
  /** The lines of its log so far. */
  readonly log: () => readonly JsonObject[]
  /** Resolves when a line with this message was logged `times` times. */
  logged(message: string, times?: number): Promise<JsonObject>
  signal(name: NodeJS.Signals): void
  readonly exited: Promise<number>
  /**
   * A request with a token of group `users`, unless other headers are given; the response is
   * validated by `checkedFetch`.
   */
  request(path: string, init?: RequestInit): Promise<Response>
  /** Creates a response. */
  ask(body: object): Promise<Response>
}

export type ProcessOptions = {
  /** Undefined: not even what every gateway gets. */
  environment?: Readonly<Record<string, string | undefined>>
  /** Used instead of an own database and folder; its creator removes it. */
  dataFolder?: string
  /** The limit of open files; by default that of the tests. */
  openFilesMax?: number
  /** Another form of the program, such as a build. The default runs from source. */
  command?: readonly string[]
  /** The default is an empty folder. */
  cwd?: string
}

/** What every gateway of a test gets. A busy machine is no database outage. */
const common = {
  PORT: '0',
  LOG_LEVEL: 'debug',
  SLUICE_DATABASE_WAIT_MS: String(helperTimeoutMs),
  SLUICE_WARM_UP_MS: '0',
  // Otherwise other work on the machine decides how long a model takes.
  SLUICE_COMPUTE_NICE: '0',
}
const program = join(import.meta.dir, '../../src/main.ts')
export const jwtSecret = 'a-secret-for-tests-of-at-least-32-characters'

const cleanups: (() => Promise<void>)[] = []

/** For `afterEach` or `afterAll`: ends the processes that this file started. */
export async function stopProcesses(): Promise<void> {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp()
}

/** An empty folder that is removed after the tests. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-process-'))
  cleanups.push(async () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A settings file, for `SLUICE_CONFIG`. */
export function configFile(toml: string): string {
  const path = join(temporaryFolder(), 'sluice.toml')
  writeFileSync(path, toml)
  return path
}

/** Starts the gateway, and resolves when it listens. */
export async function startGatewayProcess(options: ProcessOptions = {}): Promise<GatewayProcess> {
  const gateway = await launchGateway(options)
  await gateway.logged('listening')
  return gateway
}

/** Starts the gateway with a secret for tokens, unless another environment says otherwise. */
export async function launchGateway(options: ProcessOptions = {}): Promise<GatewayProcess> {
  const place = options.dataFolder === undefined ? await createTestPlace() : null
  if (place !== null) cleanups.push(place.remove)
  return launch(
    {
      JWT_SECRET: jwtSecret,
      SLUICE_DATA: options.dataFolder ?? place?.dataFolder ?? '',
      ...(place?.databaseUrl === undefined ? {} : { DATABASE_URL: place.databaseUrl }),
      ...options.environment,
    },
    options,
  )
}

/** Empty variables count as unset. */
function launch(
  environment: Readonly<Record<string, string | undefined>>,
  { openFilesMax, command = [process.execPath, program], cwd }: ProcessOptions,
): GatewayProcess {
  const limited = ['sh', '-c', `ulimit -n ${openFilesMax} && exec "$@"`, 'sh', ...command]
  const child = Bun.spawn(openFilesMax === undefined ? [...command] : limited, {
    // Away from the project, so that no settings file of a developer is found.
    cwd: cwd ?? temporaryFolder(),
    env: { ...inheritedEnvironment(), ...common, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const stdout = follow(child.stdout)
  const stderr = follow(child.stderr)
  const workersSeen = new Set<number>()
  cleanups.push(async () => {
    const path = command.at(-1) ?? program
    for (const pid of [child.pid, ...workersSeen, ...childrenOf(child.pid)]) killIfAlive(pid, path)
    await child.exited
  })

  const logged = async (message: string, times = 1): Promise<JsonObject> => {
    const lines = () => logLines(stdout.text()).filter((line) => line['message'] === message)
    await stdout.until(() => lines().length >= times, `"${message}" is logged`, stderr.text)
    for (const pid of childrenOf(child.pid)) workersSeen.add(pid)
    return lines()[times - 1] ?? {}
  }
  const port = () =>
    Number(
      logLines(stdout.text()).findLast((line) => line['message'] === 'listening')?.['port'] ?? 0,
    )
  const url = () => `http://127.0.0.1:${port()}`
  const request = async (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    if (!headers.has('authorization') && !headers.has('x-api-key')) {
      headers.set('authorization', `Bearer ${await signToken()}`)
    }
    return checkedFetch(url() + path, { ...init, headers })
  }
  return {
    pid: child.pid,
    url,
    port,
    stdout: stdout.text,
    stderr: stderr.text,
    log: () => logLines(stdout.text()),
    logged,
    signal: (name) => child.kill(name),
    // Its output is complete when it ends, not when the process does.
    exited: Promise.all([child.exited, stdout.ended, stderr.ended]).then(([code]) => code),
    request,
    ask: (body) =>
      request('/v1/responses', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
  }
}

export function signToken(groups: readonly string[] = ['users']): Promise<string> {
  return new SignJWT({ groups: [...groups] })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('tester')
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(jwtSecret))
}

/** The environment that any program needs, without configuration of a gateway. */
export function inheritedEnvironment(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR']
  return Object.fromEntries(
    names.flatMap((name) => (process.env[name] ? [[name, process.env[name] ?? '']] : [])),
  )
}

/** The running child processes of a process. */
export function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return children.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

export function isAlive(pid: number): boolean {
  try {
    // A process that nobody has buried yet is a zombie.
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Resident memory of one process, in bytes. */
export function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
}

/** The open descriptors of the process: sockets, files, pipes. */
export function openDescriptors(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(join(folder, name))]
    } catch {
      return []
    }
  })
}

/** Never signals 0, which is the process group of the tests. */
export function killProcess(pid: number | undefined, signal: NodeJS.Signals = 'SIGKILL'): void {
  if (pid === undefined || !(pid > 1)) throw new Error(`no process to kill: ${pid}`)
  process.kill(pid, signal)
}

function killIfAlive(pid: number, path: string): void {
  if (!isAlive(pid) || !readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(path)) return
  killProcess(pid)
}

function logLines(text: string): JsonObject[] {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  return whole.split('\n').map(parseJson).filter(isRecord)
}

type Followed = {
  text: () => string
  ended: Promise<void>
  until(holds: () => boolean, what: string, alsoShow: () => string): Promise<void>
}

/** Collects the output of a pipe, and resolves waiting readers. */
function follow(pipe: ReadableStream<Uint8Array>): Followed {
  const watchers = new Set<() => void>()
  const decoder = new TextDecoder()
  let text = ''
  let hasEnded = false
  const wake = () => {
    for (const watcher of watchers) watcher()
  }
  const read = async () => {
    for await (const piece of pipe) {
      text += decoder.decode(piece, { stream: true })
      wake()
    }
    hasEnded = true
    wake()
  }
  return {
    text: () => text,
    ended: read(),
    until: (holds, what, alsoShow) =>
      new Promise((resolve, reject) => {
        const fail = (why: string) => {
          reject(new Error(`${why}; waited until ${what}. Output:\n${text}\n${alsoShow()}`))
        }
        const timer = setTimeout(() => settle(() => fail('it takes too long')), helperTimeoutMs)
        const check = () => {
          if (holds()) settle(resolve)
          else if (hasEnded) settle(() => fail('the process ended'))
        }
        const settle = (how: () => void) => {
          watchers.delete(check)
          clearTimeout(timer)
          how()
        }
        watchers.add(check)
        check()
      }),
  }
}
