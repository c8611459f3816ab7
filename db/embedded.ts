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
import { roleCommand, threadProgram } from '#lib/own-program.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { awaitDataFolder, type FolderWait } from './data-folder.ts'
import type { WorkerReport, WorkerRequest } from './pglite-worker.ts'
import { DatabaseStartError } from './start-error.ts'

/** The shortest limit of the supported systems (macOS: 104 with the terminating zero). */
const socketPathBytesMax = 103
/** A shutdown checkpoint takes milliseconds; without it, the next start replays the log. */
const closeTimeoutMs = 5_000
const restartBackoffMs = 1_000
/** Without the optimising compiler, creating a cluster takes a third less CPU. */
const creatorEnvironment = { BUN_JSC_useOMGJIT: '0' }
/** Folders of incomplete clusters have this suffix and a random one. */
const unfinishedSuffix = '.new-'

/** An embedded PostgreSQL on a unix socket, for one connection at a time. */
export type EmbeddedServer = {
  readonly socketPath: string
  /**
   * Kills the engine, which restarts in less than a second. The only way to stop a query, because
   * PGlite cannot cancel one.
   */
  restart(): void
  close(): Promise<void>
}

/** Starts the embedded PostgreSQL of a data folder, which is created on the first start. */
export async function startEmbeddedServer(
  dataFolder: string,
  log: Pick<Log, 'info' | 'error'>,
  folderWait: FolderWait = { lockedMs: 0, endingMs: 0 },
): Promise<EmbeddedServer> {
  const folder = resolve(dataFolder)
  const lock = await awaitDataFolder(folder, folderWait, log)
  try {
    const clusterFolder = join(folder, 'pglite')
    if (!existsSync(join(clusterFolder, 'PG_VERSION'))) {
      log.info('creating the embedded database', { folder: clusterFolder })
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

/** Creates the cluster in a temporary folder and renames it, so that it is never incomplete. */
async function createCluster(clusterFolder: string): Promise<void> {
  if (existsSync(clusterFolder)) removeEmptyFolder(clusterFolder)
  removeUnfinished(clusterFolder)
  const unfinished = mkdtempSync(clusterFolder + unfinishedSuffix)
  const child = Bun.spawn(roleCommand('create-database', unfinished), {
    env: creatorEnvironment,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [stderr, exitCode] = await Promise.all([new Response(child.stderr).text(), child.exited])
  if (exitCode !== 0) {
    const reason = /^error: (.+)$/m.exec(stderr)?.[1] ?? `exit code ${exitCode}`
    throw new DatabaseStartError(
      `The embedded database cannot be created in ${clusterFolder}: ${reason}`,
      { cause: new Error(stderr) },
    )
  }
  // PGlite creates world-readable files.
  chmodSync(unfinished, 0o700)
  renameSync(unfinished, clusterFolder)
}

/** Deletes what killed attempts left. One may still be writing; then the next start deletes it. */
function removeUnfinished(clusterFolder: string): void {
  const stem = basename(clusterFolder) + unfinishedSuffix
  for (const name of readdirSync(dirname(clusterFolder))) {
    if (!name.startsWith(stem)) continue
    try {
      rmSync(join(dirname(clusterFolder), name), { recursive: true, force: true })
    } catch {
      // Attempts use separate folders, so leftovers are harmless.
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

/** A path in a private folder; deletes the socket of an earlier run. */
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

type EngineFiles = { clusterFolder: string; socketPath: string }

/** Restarts the engine thread when it ends; clients reconnect to the same path. */
async function superviseEngine(files: EngineFiles, log: Pick<Log, 'error'>) {
  let closing = false
  let worker = await startWorker(files)
  restartOnEnd()

  function restartOnEnd() {
    worker.addEventListener('close', restart)
  }
  async function restart() {
    if (closing) return
    log.error('embedded database stopped, restarting')
    try {
      worker = await startWorker(files)
      if (closing) worker.terminate()
      else restartOnEnd()
    } catch (error) {
      log.error('embedded database restart failed', { error })
      setTimeout(restart, restartBackoffMs).unref()
    }
  }
  return {
    restart: () => worker.terminate(),
    async close() {
      closing = true
      const closed = send(worker, { type: 'close' })
      await withTimeLimit(closed, closeTimeoutMs, () => new Error('too slow')).catch(
        (error: unknown) => log.error('embedded database shutdown failed', { error }),
      )
      worker.terminate()
    },
  }
}

async function startWorker(files: EngineFiles): Promise<Worker> {
  // A stale socket file makes the server spin.
  rmSync(files.socketPath, { force: true })
  const worker = new Worker(threadProgram(new URL('./pglite-worker.ts', import.meta.url)))
  const report = await send(worker, { type: 'open', ...files })
  if (report.type === 'open') return worker
  worker.terminate()
  const reason = report.type === 'failed' ? report.reason : 'the engine ended'
  throw new DatabaseStartError(
    `The embedded database in ${files.clusterFolder} does not open: ${reason}`,
  )
}

/** Sends a request and resolves with its report, also if the thread ends. */
function send(worker: Worker, request: WorkerRequest): Promise<WorkerReport> {
  return new Promise((resolve) => {
    worker.addEventListener('message', ({ data }: MessageEvent<WorkerReport>) => resolve(data), {
      once: true,
    })
    worker.addEventListener('close', () => resolve({ type: 'closed' }), { once: true })
    worker.addEventListener('error', ({ message }) => resolve({ type: 'failed', reason: message }))
    worker.postMessage(request)
  })
}
