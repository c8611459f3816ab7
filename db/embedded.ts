import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { withTimeLimit } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { lockDataFolder } from './data-folder.ts'
import type { WorkerReport, WorkerRequest } from './pglite-worker.ts'
import { DatabaseStartError } from './start-error.ts'

/** The shortest limit among the systems we run on (macOS: 104 with the terminating zero). */
const socketPathBytesMax = 103
/** A shutdown checkpoint takes milliseconds; without one, the log is replayed at the next start. */
const closeTimeoutMs = 5_000
const revivePauseMs = 1_000
/** Code that runs once is not worth the compiler's best: making a cluster takes a third less CPU. */
const creatorEnvironment = { BUN_JSC_useOMGJIT: '0' }
/** Clusters that are being made are called so, and something of their own. */
const unfinishedSuffix = '.new-'

/** An embedded PostgreSQL that answers on a unix socket, for one connection at a time. */
export type EmbeddedServer = {
  readonly socketPath: string
  /**
   * Ends the engine, whatever it is doing; it comes back by itself in less than a second. The only
   * way to stop a query of PGlite, which cannot cancel one.
   */
  restart(): void
  close(): Promise<void>
}

/** Starts the embedded PostgreSQL of a data folder; the first time, it is created there. */
export async function startEmbeddedServer(
  dataFolder: string,
  log: Pick<Log, 'info' | 'error'>,
): Promise<EmbeddedServer> {
  const folder = resolve(dataFolder)
  const lock = lockDataFolder(folder)
  try {
    const clusterFolder = join(folder, 'pglite')
    if (!existsSync(join(clusterFolder, 'PG_VERSION'))) {
      log.info('Creating the embedded database.', { folder: clusterFolder })
      await createCluster(clusterFolder)
    }
    const socketPath = makeSocketPath(folder)
    const engine = await superviseEngine({ clusterFolder, socketPath }, log)
    return {
      socketPath,
      restart: engine.restart,
      async close() {
        await engine.close()
        rmSync(dirname(socketPath), { recursive: true, force: true })
        lock.release()
      },
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

/** Creates the cluster beside its place and renames it: a half-made one is never opened. */
async function createCluster(clusterFolder: string): Promise<void> {
  if (existsSync(clusterFolder)) removeEmptyFolder(clusterFolder)
  removeUnfinished(clusterFolder)
  const unfinished = mkdtempSync(clusterFolder + unfinishedSuffix)
  const program = join(import.meta.dir, 'pglite-create.ts')
  const child = Bun.spawn([process.execPath, program, unfinished], {
    env: creatorEnvironment,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [complaint, exitCode] = await Promise.all([new Response(child.stderr).text(), child.exited])
  if (exitCode !== 0) {
    const reason = /^error: (.+)$/m.exec(complaint)?.[1] ?? `exit code ${exitCode}`
    throw new DatabaseStartError(
      `The embedded database cannot be created in ${clusterFolder}: ${reason}`,
      { cause: new Error(complaint) },
    )
  }
  // PGlite leaves its files open to everybody.
  chmodSync(unfinished, 0o700)
  renameSync(unfinished, clusterFolder)
}

/** What killed tries left. The program of one may still be writing; then the next start removes it. */
function removeUnfinished(clusterFolder: string): void {
  const stem = basename(clusterFolder) + unfinishedSuffix
  for (const name of readdirSync(dirname(clusterFolder))) {
    if (!name.startsWith(stem)) continue
    try {
      rmSync(join(dirname(clusterFolder), name), { recursive: true, force: true })
    } catch {
      // Each try has a folder of its own, so what is left here disturbs nobody.
    }
  }
}

function removeEmptyFolder(folder: string): void {
  try {
    rmdirSync(folder)
  } catch (cause) {
    throw new DatabaseStartError(`The folder ${folder} holds files but no database.`, { cause })
  }
}

/** A path in a folder that only this user can enter; a socket file of an earlier run is removed. */
function makeSocketPath(dataFolder: string): string {
  const own = join(dataFolder, 'run', 'postgres.sock')
  if (Buffer.byteLength(own) > socketPathBytesMax) {
    return join(mkdtempSync(join(tmpdir(), 'sluice-')), 'postgres.sock')
  }
  rmSync(dirname(own), { recursive: true, force: true })
  mkdirSync(dirname(own))
  chmodSync(dirname(own), 0o700)
  return own
}

type EnginePlace = { clusterFolder: string; socketPath: string }

/** Keeps an engine thread running until it is closed; clients reconnect to the same path. */
async function superviseEngine(place: EnginePlace, log: Pick<Log, 'error'>) {
  let closing = false
  let worker = await startWorker(place)
  reviveAfterEnd()

  function reviveAfterEnd() {
    worker.addEventListener('close', revive)
  }
  async function revive() {
    if (closing) return
    log.error('The embedded database stopped and is started again.')
    try {
      worker = await startWorker(place)
      if (closing) worker.terminate()
      else reviveAfterEnd()
    } catch (error) {
      log.error('The embedded database does not start again.', { error })
      setTimeout(revive, revivePauseMs).unref()
    }
  }
  return {
    restart: () => worker.terminate(),
    async close() {
      closing = true
      const closed = ask(worker, { type: 'close' })
      await withTimeLimit(closed, closeTimeoutMs, () => new Error('too slow')).catch(
        (error: unknown) => log.error('The embedded database did not close by itself.', { error }),
      )
      worker.terminate()
    },
  }
}

async function startWorker(place: EnginePlace): Promise<Worker> {
  // A socket file that nobody listens on makes the server spin.
  rmSync(place.socketPath, { force: true })
  const worker = new Worker(new URL('./pglite-worker.ts', import.meta.url))
  const answer = await ask(worker, { type: 'open', ...place })
  if (answer.type === 'open') return worker
  worker.terminate()
  const reason = answer.type === 'failed' ? answer.reason : 'the engine ended'
  throw new DatabaseStartError(
    `The embedded database in ${place.clusterFolder} does not open: ${reason}`,
  )
}

/** Sends one request and resolves with its report, also when the thread ends instead. */
function ask(worker: Worker, request: WorkerRequest): Promise<WorkerReport> {
  return new Promise((resolve) => {
    worker.addEventListener('message', ({ data }: MessageEvent<WorkerReport>) => resolve(data), {
      once: true,
    })
    worker.addEventListener('close', () => resolve({ type: 'closed' }), { once: true })
    worker.addEventListener('error', ({ message }) => resolve({ type: 'failed', reason: message }))
    worker.postMessage(request)
  })
}
