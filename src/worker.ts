import { openDatabase } from '#db/client.ts'
import { announceEnd } from '#db/data-folder.ts'
import { setRequestWait } from '#db/query-runner.ts'
import type { buildApp } from './app.ts'
import type { Config } from './config/schema.ts'
import { renderGreeting } from './greeting.ts'
import type { Hangups } from './hangups.ts'
import { idleTimeoutS } from './http/long-body.ts'
import { AppError } from './lib/errors.ts'
import { type Listener, openListener, type Server } from './listener.ts'
import type { StartedServices } from './modules.ts'
import type { createWorkerReloads } from './reload/worker-reloads.ts'
import { cannotListen } from './start-error.ts'
import { killAfterMs, predecessorMs, type WorkerMessage } from './supervisor.ts'
import type { Log } from './telemetry/log.ts'
import type { SupervisorChannel } from './telemetry/scrape.ts'
import { serverTls } from './tls/server-tls.ts'
import type { TrafficChannel } from './traffic/link.ts'

/** How often a draining worker checks for remaining work. */
const drainCheckMs = 25
/** How long the start waits for the first model lists of the upstreams. */
const firstListsMs = 1_000
/** How long the last bytes of ended streams may take. */
const flushMs = 1_000
/** Above any configured limit, which is enforced with our own error. */
const bodyBytesMax = Number.MAX_SAFE_INTEGER

type ServeOptions = {
  readonly log: Log
  readonly printGreeting: boolean
  readonly hangups: Hangups
} & ReturnType<typeof createWorkerReloads>

/** Runs one worker: starts the services, listens, and drains when asked to stop. */
export async function serve(
  config: Config,
  { log, printGreeting, hangups, reloads, start }: ServeOptions,
): Promise<void> {
  let draining = false
  const stopRequested = waitForStop()
  void stopRequested.then(() => {
    draining = true
  })
  setRequestWait(config.databaseWaitMs)
  // The database opens while the program loads; the embedded one on its own thread.
  const [database, { beginWork, startServices }, { buildApp }, { warmUp }] = await Promise.all([
    openDatabase({
      databaseUrl: config.databaseUrl,
      dataFolder: config.data,
      folderWait: {
        lockedMs: predecessorMs,
        endingMs: predecessorMs + config.drain.graceMs + killAfterMs,
      },
      connectionsMax: config.databaseConnectionsMax,
      log,
    }),
    import('./modules.ts'),
    import('./app.ts'),
    import('./warm-up.ts'),
  ])
  const given = { log, draining: () => draining, database, reloads }
  const services = await startServices(config, given, supervisorChannel(), trafficChannel())
  // The first requests should see the models; an unresponsive upstream does not delay the start.
  await Promise.race([services.catalogue.asked(), Bun.sleep(firstListsMs)])
  // Another supervisor may have started since.
  if (draining) return services.close()
  const listsAsked = () => Promise.race([services.catalogue.asked(), Bun.sleep(firstListsMs)])
  await start({ services, settled: listsAsked })
  hangups.handle({
    onReload: () =>
      void reloads.reload(null).catch((error) => log.error('reload failed', { error })),
    // The supervisor stops its workers.
    onTerminalClosed() {},
  })
  if (config.warmUpMs > 0) {
    log.debug('warmed up', { requests: await warmUp(services, config.warmUpMs) })
  }
  const app = buildApp(services)
  await beginWork(services)
  const listener = openListener({
    listen: (port) => listen(app, services, port),
    closeIdleUpstream: services.transport.closeIdle,
    log,
  })
  services.certificate?.watch(listener.listenAgain)
  const { port } = listener
  notifySupervisor({ type: 'ready', port })
  log.info('listening', { host: config.host, port, database: database.kind })
  if (printGreeting) {
    const code = await services.startCodes.create()
    process.stderr.write(await renderGreeting(config, { port, code }))
  }

  if ((await stopRequested) === 'orphaned') {
    log.warn('supervisor gone, releasing the port')
    await listener.stopAccepting()
  }
  if (database.kind === 'pglite') announceEnd(config.data)
  await drain(listener, services)
  await services.close()
  log.info('stopped')
}

function listen(
  app: ReturnType<typeof buildApp>,
  services: StartedServices,
  port?: number,
): Server {
  const { config, log, certificate } = services
  try {
    const { server } = app.listen({
      hostname: config.host,
      port: port ?? config.port,
      // A new certificate needs a new server on the port of the present one.
      reusePort: config.workers > 1 || certificate !== null,
      ...(certificate === null ? {} : { tls: serverTls(certificate.current(), config.tls) }),
      idleTimeout: idleTimeoutS,
      maxRequestBodySize: bodyBytesMax,
      // In development mode Bun prints errors that are already logged.
      development: false,
      error: (error) => {
        log.debug('connection failed', { error })
        return new Response(null, { status: 500 })
      },
    })
    if (server === null) throw new Error('the server did not start')
    return server
  } catch (error) {
    throw cannotListen(config, error)
  }
}

/** Waits for running work within the grace period, then aborts the rest. */
async function drain(listener: Listener, services: StartedServices): Promise<void> {
  const { batchWork, config, inference, log, runs, sockets } = services
  runs.drain()
  batchWork.drain()
  sockets.drain()
  // A request is pending until the last byte of its response was written.
  const running = () =>
    Math.max(listener.pendingRequests(), inference.running(), runs.running(), sockets.busy())
  log.info('stopping', { running: running(), grace_ms: config.drain.graceMs })
  await untilIdle(running, config.drain.graceMs)
  await listener.stopAccepting()
  inference.stopAll(new AppError('draining', 'The server is shutting down.'))
  await untilIdle(running, flushMs)
  if (running() > 0) log.warn('requests aborted at shutdown', { running: running() })
  await listener.close()
}

/**
 * Resolves at SIGTERM, SIGINT, or when the supervisor exits. Repeated signals change nothing, since
 * a signal to the process group arrives twice; only the supervisor kills.
 */
function waitForStop(): Promise<'signalled' | 'orphaned'> {
  return new Promise((resolve) => {
    process.on('SIGTERM', () => resolve('signalled'))
    process.on('SIGINT', () => resolve('signalled'))
    process.on('disconnect', () => resolve('orphaned'))
    // It may have exited while this process started: no event follows then.
    if (process.send !== undefined && !process.connected) resolve('orphaned')
  })
}

async function untilIdle(running: () => number, limitMs: number): Promise<void> {
  const endsAt = performance.now() + limitMs
  while (running() > 0 && performance.now() < endsAt) await Bun.sleep(drainCheckMs)
}

/** Absent without a supervisor. */
function supervisorChannel(): SupervisorChannel | undefined {
  if (process.send === undefined) return undefined
  return {
    send: notifySupervisor,
    onMessage: (listen) => void process.on('message', listen),
  }
}

/** Null without a supervisor. */
function trafficChannel(): TrafficChannel | null {
  if (process.send === undefined) return null
  return {
    send: notifySupervisor,
    onMessage: (listen) => void process.on('message', listen),
  }
}

function notifySupervisor(message: WorkerMessage): void {
  if (process.connected) process.send?.(message)
}
