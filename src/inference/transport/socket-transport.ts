import type { Transport } from '#inference/transport.ts'
import { sleep } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { occasionally } from '#lib/occasionally.ts'
import type { Log } from '#telemetry/log.ts'
import type { Connection } from './connection.ts'
import { ConnectionPool } from './connection-pool.ts'
import { renderRequest, type Target, targetOf } from './http1-request.ts'
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
 * Where the process has no descriptor left, another may come back within moments: connections that
 * came in a burst and were refused hold them until they are closed.
 */
const descriptorWaitMs = 1_000
const descriptorLookMs = 25
/** That there was none is told so often at most. */
const tellEveryMs = 10_000

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
  const tellMissing = occasionally(tellEveryMs, (times) =>
    log?.warn('no descriptor was left for a connection to an upstream', { times }),
  )
  const open = async (target: Target, signal: AbortSignal): Promise<Connection> => {
    const givesUpAt = performance.now() + descriptorWaitMs
    while (true) {
      try {
        return await openConnection(target, { connectMs, signal })
      } catch (error) {
        if (!(error instanceof AppError && error.kind === 'no_descriptor_left')) throw error
        pool.closeIdle()
        if (performance.now() < givesUpAt) await sleep(descriptorLookMs, signal)
        else {
          tellMissing()
          throw error
        }
      }
    }
  }

  return {
    async send(request) {
      const { signal } = request
      signal.throwIfAborted()
      const target = targetOf(request.url)
      const bytes = renderRequest(target, request)
      const roundTrip = { signal, headerBytesMax, bufferBytesMax, release }
      let kept = pool.take(target.origin)
      // Two turns at most, since a fresh connection is never taken for a dead one.
      while (true) {
        const connection = kept ?? (await open(target, signal))
        const answer = await sendOver(connection, bytes, roundTrip)
        if (answer !== null) return answer
        log?.debug('a kept upstream connection was dead', { host: target.host })
        kept = null
      }
    },
    close: () => pool.close(),
  }
}
