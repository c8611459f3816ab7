import type { CancelSignal } from '#lib/cancellation.ts'
import { canOpen } from '#lib/descriptors.ts'
import { AppError } from '#lib/errors.ts'
import { Connection, type ConnectionOwner, type UpstreamSocket } from './connection.ts'
import { noDescriptorLeft } from './descriptor-wait.ts'
import type { Endpoint } from './http1-request.ts'
import type { PendingConnects } from './pending-connects.ts'

/**
 * Connects, and for https verifies the certificate and host name. Throws `signal.reason` or an
 * `AppError`: `upstream_connect_timeout` when TCP and TLS together exceed `connectMs` or too many
 * connects are pending,
 * `no_descriptor_left` when the process has no descriptor for the socket, otherwise
 * `upstream_unreachable`.
 */
export async function openConnection(
  endpoint: Endpoint,
  options: { connectMs: number; signal: CancelSignal; pending: PendingConnects },
): Promise<Connection> {
  const { signal, pending } = options
  const opening = Promise.withResolvers<void>()
  const owner: ConnectionOwner = {
    get connection() {
      return connection
    },
    opened: opening.resolve,
    received: () => connection.lose(new Error('the upstream sent data before the request')),
    lost: (cause) => opening.reject(connectError(cause)),
  }
  const connection = new Connection(endpoint.origin, owner)
  const fail = (reason: unknown) => {
    connection.destroy()
    opening.reject(reason)
  }
  const onAbort = () => fail(signal.reason)
  const timer = setTimeout(() => fail(connectTimeout(options.connectMs)), options.connectMs)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    // Fails without a socket event: unknown host, connection refused, no descriptor left.
    pending
      .connect(endpoint, opening.promise, () => connectSocket(endpoint, owner))
      .catch((error: Error) => (error instanceof AppError ? fail(error) : connection.lose(error)))
    await opening.promise
    return connection
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

/** Bun reports a refused connection when the process has no descriptor left, so that is checked. */
export function connectError(cause: Error | null): AppError {
  return canOpen(1) ? unreachable(cause) : noDescriptorLeft()
}

export function unreachable(cause: Error | null): AppError {
  return new AppError('upstream_unreachable', 'The upstream could not be reached.', {
    cause: cause ?? new Error('the upstream closed the connection before it responded'),
  })
}

function connectTimeout(connectMs: number): AppError {
  return new AppError(
    'upstream_connect_timeout',
    'The upstream did not accept the connection in time.',
    { cause: new Error(`no connection after ${connectMs} ms`) },
  )
}

function connectSocket(endpoint: Endpoint, data: ConnectionOwner): Promise<unknown> {
  const { hostname, port } = endpoint
  if (!endpoint.tls) return Bun.connect({ hostname, port, data, socket: plainHandlers })
  const tls = {
    serverName: endpoint.serverName,
    // Explicit, so that no environment variable can disable the verification.
    rejectUnauthorized: true,
    // In the encoding of the TLS extension; Bun silently ignores any other.
    ALPNProtocols: Buffer.from('\x08http/1.1'),
  }
  return Bun.connect({ hostname, port, data, socket: tlsHandlers, tls })
}

// Exceptions in handlers reach `error`, never the process.
const handlers: Bun.SocketHandler<ConnectionOwner> = {
  data: ({ data }, bytes) => data.received(bytes),
  drain: ({ data }) => data.connection?.flush(),
  error: ({ data }, error) => data.connection?.lose(error),
  close: ({ data }, error) => data.connection?.lose(error ?? null),
}

const plainHandlers: Bun.SocketHandler<ConnectionOwner> = {
  ...handlers,
  open(socket) {
    attach(socket)
    socket.data.connection?.opened()
  },
}

const tlsHandlers: Bun.SocketHandler<ConnectionOwner> = {
  ...handlers,
  open: attach,
  handshake({ data: { connection } }, authorized, error) {
    if (authorized && error === null) connection?.opened()
    else connection?.lose(error ?? new Error('the certificate of the upstream was not accepted'))
  },
}

function attach(socket: UpstreamSocket) {
  socket.data.connection?.attach(socket)
}
