import { canOpen } from './lib/descriptors.ts'
import type { Log } from './telemetry/log.ts'

export type Server = Bun.Server<unknown>

/** Where connections of clients come in. */
export type Listener = {
  readonly port: number
  /** Requests whose answers were not given to the kernel whole. */
  pendingRequests(): number
  /** Ends all connections. */
  close(): Promise<void>
}

/** How often it is looked whether descriptors are short. */
const lookMs = 500
/** So many looks outlast a burst, whose refused connections are closed one after the other. */
const shortLooksMax = 4
/** What is to be free for the database, files and threads; Bun ends the process without some. */
const spareDescriptors = 16
/** Listening begins again when so many are free, so that it does not end again at once. */
const resumeDescriptors = 2 * spareDescriptors

/**
 * Listens, and lets go of clients when descriptors are short: first of those that wait for nothing,
 * and if that does not help, no more are let in until there is room. Bun would go on accepting up to
 * the limit and there, failing, use up a core. `listen` is given the port to listen on again.
 */
export function openListener(deps: {
  listen: (port?: number) => Server
  log: Pick<Log, 'info' | 'warn' | 'error'>
}): Listener {
  const { listen, log } = deps
  const first = listen()
  const port = first.port ?? 0
  /** Those that no longer listen have connections that go on. */
  const servers = new Set([first])
  let listening: Server | null = first
  let shortLooks = 0

  const pause = (server: Server) => {
    listening = null
    shortLooks = 0
    void server.stop(false).then(() => servers.delete(server))
    log.warn('descriptors are short: no connections are accepted for the time being')
  }
  const resume = () => {
    try {
      listening = listen(port)
      servers.add(listening)
      log.info('connections are accepted again')
    } catch (error) {
      log.error('the port cannot be listened on again', { port, error })
    }
  }
  const look = () => {
    if (listening === null) {
      if (canOpen(resumeDescriptors)) resume()
      return
    }
    if (canOpen(spareDescriptors)) {
      shortLooks = 0
      return
    }
    listening.closeIdleConnections()
    if (++shortLooks >= shortLooksMax) pause(listening)
  }
  const timer = setInterval(look, lookMs)

  return {
    port,
    pendingRequests: () => {
      let pending = 0
      for (const server of servers) pending += server.pendingRequests
      return pending
    },
    async close() {
      clearInterval(timer)
      await Promise.all([...servers].map((server) => server.stop(true)))
    },
  }
}
