import type { Subprocess } from 'bun'
import { version } from '#package.json'
import { childEnvironment } from './config/load.ts'
import type { Config } from './config/schema.ts'
import type { Hangups } from './hangups.ts'
import { sleep } from './lib/deadline.ts'
import { roleCommand } from './lib/own-program.ts'
import { onNpxExit } from './npx-exit.ts'
import { listenForScrapes, type Readiness } from './operations/metrics-listener.ts'
import type { Coordinator } from './reload/coordinator.ts'
import type { ReloadMessage, SupervisorMessage } from './reload/messages.ts'
import { cannotListen } from './start-error.ts'
import {
  createFleetMetrics,
  type FleetMetrics,
  type WorkerMetrics,
} from './telemetry/fleet-metrics.ts'
import type { Log } from './telemetry/log.ts'
import { createMetricRegistry } from './telemetry/metrics.ts'
import type { MetricsReport } from './telemetry/metrics-messages.ts'
import { addProcessMetrics, seriesMax } from './telemetry/process-metrics.ts'
import {
  createFleetTraffic,
  type FleetTraffic,
  type WorkerTraffic,
} from './traffic/fleet-traffic.ts'
import type { TrafficMessage } from './traffic/messages.ts'

/** From a worker. `ready` is sent once, when it listens. */
export type WorkerMessage =
  | { type: 'ready'; port: number }
  | MetricsReport
  | ReloadMessage
  | TrafficMessage

/** Bun reads these when a process starts, so the supervisor sets them for its workers. */
const workerEnvironment = {
  // By default `fetch` runs 256 requests at a time and queues the others.
  BUN_CONFIG_MAX_HTTP_REQUESTS: '65336',
}

const restartPauseMs = { first: 500, max: 30_000 }
/** A worker that ran this long is not in a crash loop. */
const healthyAfterMs = 60_000
/** Time beyond the grace period for a worker to end its streams and close. */
export const killAfterMs = 15_000
/** How long a worker of a killed supervisor may take to notice and to announce its end. */
export const predecessorMs = 5_000
const portRetryMs = 100
/**
 * Signals within this time count as one: Ctrl-C signals the whole process group, and npm and
 * `bun run` each forward theirs.
 */
const signalDebounceMs = 1_000

type Workers = {
  readonly log: Log
  readonly metrics: FleetMetrics
  readonly traffic: FleetTraffic
  readonly coordinator: Coordinator
  readonly running: Set<Subprocess>
  /** The port of the next worker. */
  port: number
  readonly stopping: AbortController
}

type WorkerExit = {
  wasReady: boolean
  uptimeMs: number
  code: number
  signal: Subprocess['signalCode']
}

/**
 * Starts the workers, restarts dead ones, forwards SIGTERM and SIGINT, and resolves with the exit
 * code. A second signal kills the workers.
 *
 * The first worker starts alone. If it fails before it listens (no database, data folder in use),
 * every other worker would fail too, so the supervisor exits and the failure is reported once.
 */
export async function supervise(
  config: Config,
  { log, coordinator, hangups }: { log: Log; coordinator: Coordinator; hangups: Hangups },
): Promise<number> {
  await requireFreePort(config, log)
  const stopping = new AbortController()
  const metrics = startMetrics(config)
  const running = new Set<Subprocess>()
  const state: Workers = {
    log,
    metrics,
    traffic: createFleetTraffic(),
    coordinator,
    running,
    port: config.port,
    stopping,
  }
  const stop = stopOnSignals(state, config.drain.graceMs)
  onNpxExit(stop)
  hangups.handle({
    onReload: () =>
      void coordinator.reload().catch((error) => log.error('reload failed', { error })),
    onTerminalClosed: stop,
  })
  listenOnMetricsPort(config, state)

  const served = Promise.withResolvers<boolean>()
  const first = runWorker(state, 'first', 0, () => served.resolve(true))
  void first.then(() => served.resolve(false))
  if (!(await served.promise)) {
    const { signal } = await first
    if (signal !== null) log.error('first worker was killed before it listened', { signal })
    return stopping.signal.aborted ? 0 : 1
  }
  const othersCount = stopping.signal.aborted ? 0 : config.workers - 1
  const others = Array.from({ length: othersCount }, (_, at) => runWorker(state, 'other', at + 1))
  const clean = await Promise.all(
    [first, ...others].map((exit, at) => restartOnExit(state, exit, at)),
  )
  return clean.every(Boolean) ? 0 : 1
}

/** Restarts a worker whenever it exits; resolves at shutdown to whether it exited cleanly. */
async function restartOnExit(
  state: Workers,
  firstExit: Promise<WorkerExit>,
  index: number,
): Promise<boolean> {
  const { signal: stopped } = state.stopping
  let pauseMs = restartPauseMs.first
  for (let exit = firstExit; ; exit = runWorker(state, 'other', index)) {
    const { wasReady, uptimeMs, code, signal } = await exit
    // A starting worker may be signalled before it handles signals.
    if (stopped.aborted) return code === 0 || !wasReady
    if (uptimeMs > healthyAfterMs) pauseMs = restartPauseMs.first
    state.log.error('worker exited, restarting', { code, signal, pause_ms: pauseMs })
    state.metrics.restarted()
    await sleep(pauseMs, stopped).catch(() => {})
    if (stopped.aborted) return true
    pauseMs = Math.min(pauseMs * 2, restartPauseMs.max)
  }
}

/** Runs one worker process until it exits. A restarted one has the index of the dead one. */
async function runWorker(
  state: Workers,
  role: 'first' | 'other',
  index: number,
  onReady: () => void = () => {},
): Promise<WorkerExit> {
  const startedAt = performance.now()
  const joined: { metrics: WorkerMetrics | null; traffic: WorkerTraffic | null } = {
    metrics: null,
    traffic: null,
  }
  const worker = Bun.spawn(roleCommand('worker', role, String(index)), {
    env: childEnvironment({ ...workerEnvironment, PORT: String(state.port) }),
    stdio: ['ignore', 'inherit', 'inherit'],
    ipc(message: WorkerMessage, sender) {
      if (message.type === 'reloaded' || message.type === 'reload-request') {
        return reloads.received(message)
      }
      if (message.type === 'traffic-request' || message.type === 'traffic-report') {
        return joined.traffic?.received(message)
      }
      if (message.type !== 'ready') return joined.metrics?.received(message)
      reloads.ready()
      joined.metrics = state.metrics.add((request) => sender.send(request))
      joined.traffic = state.traffic.add((order) => sender.send(order))
      state.port = message.port
      onReady()
    },
  })
  state.running.add(worker)
  const { coordinator } = state
  const send = (message: SupervisorMessage) => {
    // One that has just exited is reported as stopped.
    if (worker.exitCode === null && worker.signalCode === null) worker.send(message)
  }
  const reloads = coordinator.connect(worker.pid, send)
  send({ type: 'config', files: coordinator.files() })
  const code = await worker.exited
  state.running.delete(worker)
  joined.metrics?.ended()
  joined.traffic?.ended()
  reloads.exited()
  const uptimeMs = performance.now() - startedAt
  return { wasReady: joined.metrics !== null, uptimeMs, code, signal: worker.signalCode }
}

function startMetrics({ workers }: Config): FleetMetrics {
  const registry = createMetricRegistry({ seriesMax })
  addProcessMetrics(registry, version)
  const nowMs = () => performance.now()
  return createFleetMetrics({ registry, workersConfigured: workers, nowMs })
}

function listenOnMetricsPort(
  { host, metrics: { port, token } }: Config,
  { log, metrics, stopping }: Pick<Workers, 'log' | 'metrics' | 'stopping'>,
): void {
  if (port === undefined) return
  const readiness = (): Readiness => {
    if (stopping.signal.aborted) return 'draining'
    return metrics.workersRunning() > 0 ? 'ok' : 'starting'
  }
  try {
    const listener = listenForScrapes({ host, port, token, scrape: metrics.scrape, readiness })
    log.info('serving metrics', { host, port: listener.port })
  } catch (error) {
    throw cannotListen({ host, port }, error)
  }
}

function stopOnSignals({ stopping, running, coordinator }: Workers, graceMs: number): () => void {
  let signalledAt = Number.POSITIVE_INFINITY
  const signalAll = (signal: NodeJS.Signals) => {
    for (const worker of running) worker.kill(signal)
  }
  const stop = () => {
    if (performance.now() - signalledAt > signalDebounceMs) return signalAll('SIGKILL')
    if (stopping.signal.aborted) return
    signalledAt = performance.now()
    stopping.abort()
    coordinator.stop()
    signalAll('SIGTERM')
    setTimeout(signalAll, graceMs + killAfterMs, 'SIGKILL').unref()
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  return stop
}

/**
 * Workers use SO_REUSEPORT, which would silently share the port with another gateway. Waits for a
 * worker of a killed supervisor, which releases the port as soon as it notices.
 */
async function requireFreePort({ host, port }: Config, log: Log): Promise<void> {
  const endsAt = performance.now() + predecessorMs
  for (let attempt = 0; ; attempt++) {
    try {
      Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true)
      return
    } catch (error) {
      const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
      if (!isTaken || performance.now() >= endsAt) throw cannotListen({ host, port }, error)
      if (attempt === 0) log.info('port in use, waiting', { port })
      await Bun.sleep(portRetryMs)
    }
  }
}
