import { openDatabase } from '#db/client.ts'
import type { buildApp } from './app.ts'
import type { Config } from './config/schema.ts'
import { renderGreeting } from './greeting.ts'
import { AppError } from './lib/errors.ts'
import { type Listener, openListener, type Server } from './listener.ts'
import type { StartedServices } from './modules.ts'
import { cannotListen } from './start-error.ts'
import type { WorkerMessage } from './supervisor.ts'
import type { Log } from './telemetry/log.ts'

/** How often a stopping worker looks whether its work is over. */
const drainLookMs = 25
/** How long the start waits for the model lists of the upstreams. */
const firstListsMs = 1_000
/** How long the last bytes of ended streams may take to leave. */
const flushMs = 1_000
/** Clients that send their request slower than this are cut off. */
const idleTimeoutS = 30
/** Far above any configured limit: the limit itself answers in our own error shape. */
const bodyBytesMax = Number.MAX_SAFE_INTEGER

/** One serving process: opens everything, listens, and ends when it is told to stop. */
export async function serve(
  config: Config,
  { log, greets }: { log: Log; greets: boolean },
): Promise<void> {
  const toldToStop = hearStop()
  let draining = false
  // The database opens, the embedded one on a thread of its own, while this one loads the program.
  const [database, { startServices }, { buildApp }] = await Promise.all([
    openDatabase({
      databaseUrl: config.databaseUrl,
      dataFolder: config.data,
      connectionsMax: config.databaseConnectionsMax,
      log,
    }),
    import('./modules.ts'),
    import('./app.ts'),
  ])
  const deps = await startServices(config, { log, draining: () => draining, database })
  // Whoever asks first shall see the models; an upstream that hangs does not hold up the rest.
  await Promise.race([deps.catalogue.asked, Bun.sleep(firstListsMs)])
  const app = buildApp(deps)
  const listener = openListener({ listen: (port) => listen(app, deps, port), log })
  const { port } = listener
  tellSupervisor({ type: 'ready', port })
  log.info('listening', { host: config.host, port, database: database.kind })
  if (greets) process.stderr.write(await renderGreeting(config, port))

  await toldToStop
  draining = true
  await drain(listener, deps)
  await deps.close()
  log.info('stopped')
}

function listen(app: ReturnType<typeof buildApp>, deps: StartedServices, port?: number): Server {
  const { config, log } = deps
  try {
    const { server } = app.listen({
      hostname: config.host,
      port: port ?? config.port,
      reusePort: config.workers > 1,
      idleTimeout: idleTimeoutS,
      maxRequestBodySize: bodyBytesMax,
      // In development mode Bun prints what we already log.
      development: false,
      error: (error) => {
        log.debug('a connection was ended', { error })
        return new Response(null, { status: 500 })
      },
    })
    if (server === null) throw new Error('the server did not start')
    return server
  } catch (error) {
    throw cannotListen(config, error)
  }
}

/** Lets what runs finish, within the grace period; then tells the rest, and lets go of it. */
async function drain(listener: Listener, deps: StartedServices): Promise<void> {
  const { config, inference, log, runs, sockets } = deps
  runs.drain()
  sockets.drain()
  // A request is pending until the last byte of its answer was given to the kernel.
  const running = () =>
    Math.max(listener.pendingRequests(), inference.running(), runs.running(), sockets.busy())
  log.info('stopping', { running: running(), grace_ms: config.drain.graceMs })
  await untilIdle(running, config.drain.graceMs)
  inference.stopAll(new AppError('draining', 'The server is shutting down.'))
  await untilIdle(running, flushMs)
  if (running() > 0) log.warn('requests were cut off', { running: running() })
  await listener.close()
}

/**
 * SIGTERM, SIGINT, or the end of the supervisor: a worker never outlives it. Whoever signals the
 * whole process group tells a worker twice, so repeating it changes nothing; killing is the
 * supervisor's to decide.
 */
function hearStop(): Promise<void> {
  return new Promise((resolve) => {
    process.on('SIGTERM', () => resolve())
    process.on('SIGINT', () => resolve())
    process.on('disconnect', () => resolve())
  })
}

async function untilIdle(running: () => number, limitMs: number): Promise<void> {
  const endsAt = performance.now() + limitMs
  while (running() > 0 && performance.now() < endsAt) await Bun.sleep(drainLookMs)
}

function tellSupervisor(message: WorkerMessage): void {
  process.send?.(message)
}
