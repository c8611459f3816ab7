import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '#test/support/free-port.ts'
import { childrenOf, isAlive, killProcess } from '#test/support/process.ts'

/** A PostgreSQL server that belongs to the simulation, so that it can be stopped and frozen. */
export type OwnPostgres = {
  readonly url: string
  /** Ends at once, as after a crash: committed transactions survive, and nothing else. */
  crash(): Promise<void>
  start(): Promise<void>
  /** Connections stay open, and nothing answers. */
  freeze(): void
  thaw(): void
  stop(): Promise<void>
}

const installed = '/usr/lib/postgresql'
const superuser = 'postgres'
const connectionsMax = 200
/** A frozen server continues earlier; a busy machine takes seconds. */
const connectTimeoutS = 20
const logCharsShown = 2_000

/** The folder of the programs of the newest installed server with pgvector, or null. */
export function postgresPrograms(): string | null {
  if (!existsSync(installed)) return null
  const versions = readdirSync(installed).toSorted((one, other) => Number(other) - Number(one))
  const version = versions.find(
    (each) =>
      existsSync(join(installed, each, 'bin/initdb')) &&
      existsSync(`/usr/share/postgresql/${each}/extension/vector.control`),
  )
  return version === undefined ? null : join(installed, version, 'bin')
}

/** Keeps the server in `folder`, which its user must be able to reach. */
export async function startOwnPostgres(programs: string, folder: string): Promise<OwnPostgres> {
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o777)
  const data = join(folder, 'data')
  const log = join(folder, 'log')
  const port = freePort()
  // The server refuses to run as root.
  const asServer = process.getuid?.() === 0 ? ['runuser', '-u', superuser, '--'] : []
  const run = async (program: string, ...args: readonly string[]) => {
    const child = Bun.spawn([...asServer, join(programs, program), ...args], {
      cwd: folder,
      // The server keeps its output open.
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    if ((await child.exited) !== 0) {
      const logged = existsSync(log) ? `:\n${readFileSync(log, 'utf8').slice(-logCharsShown)}` : ''
      throw new Error(`${program} ${args.join(' ')} failed${logged}`)
    }
  }
  await run(
    'initdb',
    '-D',
    data,
    '-U',
    superuser,
    '--encoding=UTF8',
    '--locale=C.UTF-8',
    '-A',
    'trust',
  )
  const options = [
    `-p ${port}`,
    '-h 127.0.0.1',
    `-k ${folder}`,
    `-c max_connections=${connectionsMax}`,
    // Only the processes crash, not the machine.
    '-c fsync=off',
    '-c synchronous_commit=on',
  ].join(' ')
  const start = () => run('pg_ctl', '-D', data, '-o', options, '-l', log, '-w', '-t', '60', 'start')
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
    const postmaster = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
    // The parent first when it stops, so that it starts no further process.
    const all = [postmaster, ...childrenOf(postmaster)].filter(isAlive)
    for (const pid of name === 'SIGSTOP' ? all : all.toReversed()) killProcess(pid, name)
  }
  await start()
  return {
    url: `postgres://${superuser}@127.0.0.1:${port}/postgres?connect_timeout=${connectTimeoutS}`,
    crash: () => run('pg_ctl', '-D', data, '-m', 'immediate', '-w', 'stop'),
    start,
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    stop: () => run('pg_ctl', '-D', data, '-m', 'immediate', '-w', 'stop'),
  }
}
