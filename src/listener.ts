import { createKernelSockets } from './http/kernel-sockets.ts'
import { canOpen } from './lib/descriptors.ts'
import type { Log } from './telemetry/log.ts'

export type Server = Bun.Server<unknown>

/** The listening socket of a worker. */
export type Listener = {
  readonly port: number
  /** Requests whose responses were not written completely. */
  pendingRequests(): number
  /** Listens again, with the present certificate; open connections keep the one that they have. */
  listenAgain(): void
  /**
   * Releases the port. First the connections that have begun are accepted and their requests read: they
   * would be reset. Requests on open connections are still served.
   */
  stopAccepting(): Promise<void>
  /** Closes all connections. */
  close(): Promise<void>
}

/** Connections that wait to be accepted; the usual limit of Linux (`net.core.somaxconn`). */
const backlog = 4_096
const checkEveryMs = 250
/** Consecutive failed checks before accepting stops; more than a burst of refused connections causes. */
const failedChecksMax = 8
/** A request usually follows its connection at once. */
const silentMs = 1_000
/** Connections without a request that one check closes. */
const silentClosedMax = 256
/** Reserved for the database, files and threads; without any, Bun ends the process. */
const spareDescriptors = 16
/**
 * How long a former listening socket still completes the connections that have begun. Twice: after a
 * stall of the loop the first timer fires before what came meanwhile is accepted.
 */
const handshakeMs = 250
/** Servers with former certificates; beyond, the oldest closes its idle connections and ends. */
const retiredMax = 16
/** Free descriptors at which accepting resumes; the margin prevents flapping. */
const resumeDescriptors = 2 * spareDescriptors

/**
 * Listens, and sheds load when descriptors run out. First it closes idle connections: those to upstreams,
 * those without any request, the oldest first, then those between two requests; new connections wait meanwhile. If
 * that frees nothing, it stops accepting until descriptors are free. Bun itself would accept up to the
 * limit and then spin on failing accepts. `listen` gets the port when it listens again.
 */
export function openListener(deps: {
  listen: (port?: number) => Server
  closeIdleUpstream: () => void
  log: Pick<Log, 'info' | 'warn' | 'error'>
}): Listener {
  const { listen, closeIdleUpstream, log } = deps
  const first = listen()
  const port = first.port ?? 0
  // Opened now, because later there may be no descriptor for it.
  const sockets = createKernelSockets(port)
  sockets.setBacklog(backlog)
  /** Including those that stopped listening and still have connections. */
  const servers = new Set([first])
  let listening: Server | null = first
  let failedChecks = 0
  let isShedding = false

  /** Servers that do not listen any more, with the connections that they had. */
  const retired: Server[] = []

  const stopServer = (server: Server) => {
    void server.stop(false).then(() => servers.delete(server))
  }
  const stopListening = (server: Server) => {
    listening = null
    stopServer(server)
  }
  const pause = (server: Server) => {
    failedChecks = 0
    stopListening(server)
    log.warn('descriptor limit reached, accepting paused')
  }
  const resume = () => {
    try {
      listening = listen(port)
      sockets.setBacklog(backlog)
      servers.add(listening)
      log.info('accepting resumed')
    } catch (error) {
      log.error('listening again failed', { port, error })
    }
  }
  const listenAgain = () => {
    // While accepting is paused, the next server gets the certificate.
    if (listening === null) return
    const former = listening
    const retiring = sockets.takeListening()
    listening = listen(port)
    sockets.setBacklog(backlog)
    servers.add(listening)
    if (retiring === null) return stopServer(former)
    retiring.ignoreNew()
    void untilBegun().then(() => retiring.close())
    retired.push(former)
    const oldest = retired.length > retiredMax ? retired.shift() : undefined
    if (oldest !== undefined) stopServer(oldest)
  }
  const check = () => {
    if (listening === null) {
      if (canOpen(resumeDescriptors)) resume()
      return
    }
    if (canOpen(spareDescriptors)) {
      failedChecks = 0
      isShedding = false
      return
    }
    if (!isShedding) log.warn('descriptor limit reached, closing idle connections')
    isShedding = true
    closeIdleUpstream()
    const closed = sockets.closeSilent({ silentMs, countMax: silentClosedMax })
    // Connections that wait to be accepted would be reset.
    if (closed > 0) failedChecks = 0
    if (closed < spareDescriptors) listening.closeIdleConnections()
    if (++failedChecks >= failedChecksMax) pause(listening)
  }
  const timer = setInterval(check, checkEveryMs)

  return {
    port,
    pendingRequests: () => {
      let pending = 0
      for (const server of servers) pending += server.pendingRequests
      return pending
    },
    listenAgain,
    async stopAccepting() {
      clearInterval(timer)
      if (listening === null) return
      sockets.takeListening()?.ignoreNew()
      await untilBegun()
      for (const server of retired.splice(0)) stopServer(server)
      if (listening !== null) stopListening(listening)
    },
    async close() {
      clearInterval(timer)
      await Promise.all([...servers].map((server) => server.stop(true)))
    },
  }
}

/** Until the connections that have begun were accepted. */
async function untilBegun(): Promise<void> {
  for (let times = 0; times < 2; times++) await Bun.sleep(handshakeMs)
}
