import type { Transport } from '#inference/transport.ts'
import type { Log } from '#telemetry/log.ts'
import type { Connection } from './connection.ts'
import { ConnectionPool } from './connection-pool.ts'
import { createDescriptorWait } from './descriptor-wait.ts'
import { renderRequest, targetOf } from './http1-request.ts'
import { openConnection } from './open-connection.ts'
import { sendOver } from './round-trip.ts'

export type SocketTransportOptions = {
  /** For TCP and TLS together. */
  connectMs: number
  /** How long an unused connection is kept. */
  idleMs: number
  idleSocketsPerOriginMax: number
  /** For the heads of one answer, and for its trailer. */
  headerBytesMax: number
  /** What is received of one body before it is read; then the upstream is held back. */
  bufferBytesMax: number
  log?: Pick<Log, 'debug' | 'warn'>
}

/**
 * An HTTP/1.1 client over sockets of our own: strict, without redirects, decompression or a limit
 * on the requests at a time. It keeps connections alive, and repeats a request once, on a fresh
 * connection, when a kept one turns out to be dead before a byte of the answer came. A request that
 * cannot be sent at all (its URL, its headers) throws a plain error.
 */
export function createSocketTransport(
  options: SocketTransportOptions,
): Transport & { close(): void } {
  const pool = new ConnectionPool({
    idleMs: options.idleMs,
    idlePerOriginMax: options.idleSocketsPerOriginMax,
  })
  const { connectMs, headerBytesMax, bufferBytesMax, log } = options
  const release = (connection: Connection) => pool.put(connection)
  const withDescriptor = createDescriptorWait({ closeIdle: () => pool.closeIdle(), log })

  return {
    async send(request) {
      const { signal } = request
      signal.throwIfAborted()
      const target = targetOf(request.url)
      const bytes = renderRequest(target, request)
      const roundTrip = { signal, headerBytesMax, bufferBytesMax, release }
      const open = () => openConnection(target, { connectMs, signal })
      let kept = pool.take(target.origin)
      // Two turns at most, since a fresh connection is never taken for a dead one.
      while (true) {
        const connection = kept ?? (await withDescriptor(open, signal))
        const answer = await sendOver(connection, bytes, roundTrip)
        if (answer !== null) return answer
        log?.debug('a kept upstream connection was dead', { host: target.host })
        kept = null
      }
    },
    close: () => pool.close(),
  }
}
