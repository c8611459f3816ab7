import { fileURLToPath } from 'node:url'
import type { Subprocess } from 'bun'
import { childEnvironment } from './config/load.ts'
import type { Config } from './config/schema.ts'
import { sleep } from './lib/deadline.ts'
import { cannotListen } from './start-error.ts'
import type { Log } from './telemetry/log.ts'

/** What a worker tells its supervisor, once: it serves, on this port. */
export type WorkerMessage = { type: 'ready'; port: number }

/** Bun reads these once, when a process starts, so they are set for the workers here. */
const processSwitches = {
  // `fetch` runs 256 requests at a time by default; the others wait without a word.
  BUN_CONFIG_MAX_HTTP_REQUESTS: '65336',
}

const restartPauseMs = { first: 500, max: 30_000 }
/** A worker that lived so long is not in a crash loop. */
const healthyAfterMs = 60_000
/** What a worker gets beyond its grace period, to tell its clients and to close what it has open. */
const killAfterMs = 15_000
/**
 * Signals that come closer together than this are one: with Ctrl-C the terminal signals the whole
 * process group, and npm and `bun run` each pass on what they got.
 */
const sameSignalMs = 1_000

type Crew = {
  readonly log: Log
  readonly workers: Set<Subprocess>
  /** Where the next worker listens. */
  port: number
  readonly stopping: AbortController
}

/** How a worker ended. */
type Ending = {
  wasReady: boolean
  livedMs: number
  code: number
  signal: Subprocess['signalCode']
}

/**
 * Runs the workers: starts them, starts a dead one again, passes SIGTERM and SIGINT on, and
 * resolves with the exit code of the whole. A second signal kills.
 *
 * The first worker starts alone. What stops it before it ever served (no database, a data folder
 * in use) would stop every other and will not pass: it ends everything, and is told once.
 */
export async function supervise(config: Config, log: Log): Promise<number> {
  requireFreePort(config)
  const stopping = new AbortController()
  const crew: Crew = { log, workers: new Set(), port: config.port, stopping }
  stopOnSignals(crew, config.drain.graceMs)

  const served = Promise.withResolvers<boolean>()
  const first = live(crew, 'first', () => served.resolve(true))
  void first.then(() => served.resolve(false))
  if (!(await served.promise)) {
    const { signal } = await first
    // A worker that ends by itself has said why.
    if (signal !== null) log.error('the worker was killed before it served', { signal })
    return stopping.signal.aborted ? 0 : 1
  }
  const othersCount = stopping.signal.aborted ? 0 : config.workers - 1
  const others = Array.from({ length: othersCount }, () => live(crew, 'other'))
  const peaceful = await Promise.all([first, ...others].map((life) => keepAlive(crew, life)))
  return peaceful.every(Boolean) ? 0 : 1
}

/** Starts a worker again whenever it ends; resolves to whether it ended well in the end. */
async function keepAlive(crew: Crew, firstLife: Promise<Ending>): Promise<boolean> {
  const { signal: stopped } = crew.stopping
  let pauseMs = restartPauseMs.first
  for (let life = firstLife; ; life = live(crew, 'other')) {
    const { wasReady, livedMs, code, signal } = await life
    // One that had nothing to lose may have been told before it could listen to signals.
    if (stopped.aborted) return code === 0 || !wasReady
    if (livedMs > healthyAfterMs) pauseMs = restartPauseMs.first
    crew.log.error('worker ended and is started again', { code, signal, pause_ms: pauseMs })
    await sleep(pauseMs, stopped).catch(() => {})
    if (stopped.aborted) return true
    pauseMs = Math.min(pauseMs * 2, restartPauseMs.max)
  }
}

/** One worker from its start to its end. */
async function live(
  crew: Crew,
  part: 'first' | 'other',
  onReady: () => void = () => {},
): Promise<Ending> {
  const startedAt = performance.now()
  let wasReady = false
  const program = fileURLToPath(new URL('./main.ts', import.meta.url))
  const worker = Bun.spawn([process.execPath, program, 'worker', part], {
    env: childEnvironment({ ...processSwitches, PORT: String(crew.port) }),
    stdio: ['ignore', 'inherit', 'inherit'],
    ipc: ({ port }: WorkerMessage) => {
      wasReady = true
      crew.port = port
      onReady()
    },
  })
  crew.workers.add(worker)
  const code = await worker.exited
  crew.workers.delete(worker)
  const livedMs = performance.now() - startedAt
  return { wasReady, livedMs, code, signal: worker.signalCode }
}

function stopOnSignals({ stopping, workers }: Crew, graceMs: number): void {
  let toldAt = Number.POSITIVE_INFINITY
  const signalAll = (signal: NodeJS.Signals) => {
    for (const worker of workers) worker.kill(signal)
  }
  const stop = () => {
    if (performance.now() - toldAt > sameSignalMs) return signalAll('SIGKILL')
    if (stopping.signal.aborted) return
    toldAt = performance.now()
    stopping.abort()
    signalAll('SIGTERM')
    setTimeout(signalAll, graceMs + killAfterMs, 'SIGKILL').unref()
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

/** Workers that share a port would share it with another gateway as well, without a word. */
function requireFreePort({ host, port }: Config): void {
  try {
    Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true)
  } catch (error) {
    throw cannotListen({ host, port }, error)
  }
}
