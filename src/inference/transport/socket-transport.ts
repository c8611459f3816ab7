import type { PooledTransport, UpstreamHttpRequest } from '#inference/transport.ts'
import { createCohorts } from '#lib/cohorts.ts'
import type { Log } from '#telemetry/log.ts'
import type { Connection } from './connection.ts'
import { ConnectionPool } from './connection-pool.ts'
import { createDescriptorWait } from './descriptor-wait.ts'
import { endpointOf, renderRequest } from './http1-request.ts'
import { openConnection } from './open-connection.ts'
import { createPendingConnects } from './pending-connects.ts'
import { sendOver } from './round-trip.ts'

export type SocketTransportOptions = {
  /** For TCP and TLS together; read for each connection. */
  connectMs: () => number
  /** How long an idle connection is kept. */
  idleMs: number
  idleSocketsPerOriginMax: number
  /** For the heads of one response, and for its trailer. */
  headerBytesMax: number
  /** Unread bytes of one body before the upstream is paused. */
  bufferBytesMax: number
  log?: Pick<Log, 'debug' | 'warn'>
}

/**
 * An HTTP/1.1 client over plain sockets: strict, without redirects or a limit on concurrent requests,
 * only on concurrent connects. It pools connections, and retries a request once on a new one when a
 * pooled one is stale. An invalid request (its URL or headers) throws a plain error.
 */
export function createSocketTransport(options: SocketTransportOptions): PooledTransport {
  const pool = new ConnectionPool({
    idleMs: options.idleMs,
    idlePerOriginMax: options.idleSocketsPerOriginMax,
  })
  const pending = createPendingConnects()
  const { headerBytesMax, bufferBytesMax, log } = options
  const release = (connection: Connection) => pool.put(connection)
  // Responses that arrive together are read and rendered together.
  const joinCohort = createCohorts()
  const closeIdle = () => pool.closeIdle()
  const withDescriptor = createDescriptorWait({ closeIdle, log })

  return {
    async send(request) {
      const { signal } = request
      signal.throwIfAborted()
      const endpoint = endpointOf(request.url)
      const startedAtMs = performance.now()
      const rendered = renderRequest(endpoint, request)
      const roundTrip = { signal, headerBytesMax, bufferBytesMax, release }
      const open = () =>
        openConnection(endpoint, { connectMs: options.connectMs(), signal, pending })
      let pooled = pool.take(endpoint.origin)
      // Two iterations at most: a new connection is never stale.
      while (true) {
        const connection = pooled ?? (await withDescriptor(open, signal))
        if (pooled === null) noteConnect(request, startedAtMs)
        const response = await sendOver(connection, rendered, roundTrip)
        if (response !== null) {
          await joinCohort()
          return response
        }
        log?.debug('stale upstream connection', { host: endpoint.host })
        pooled = null
      }
    },
    closeIdle,
    close: () => pool.close(),
  }
}

function noteConnect({ identity }: UpstreamHttpRequest, startedAtMs: number): void {
  if (identity === undefined) return
  const connectMs = performance.now() - startedAtMs
  if (identity.exchange !== undefined) identity.exchange.connectMs = connectMs
  identity.trace?.span?.set({ 'sluice.connect_ms': connectMs })
}
