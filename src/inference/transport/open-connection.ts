import { canOpen } from '#lib/descriptors.ts'
import { AppError } from '#lib/errors.ts'
import { Connection } from './connection.ts'
import { noDescriptorLeft } from './descriptor-wait.ts'
import type { Target } from './http1-request.ts'

/**
 * Connects, and for https verifies the certificate and the host name. Throws `signal.reason`, or
 * an `AppError`: `upstream_connect_timeout` when TCP and TLS together take longer than `connectMs`,
 * `no_descriptor_left` where that is why there is no socket, `upstream_unreachable` for every other
 * failure.
 */
export async function openConnection(
  target: Target,
  options: { connectMs: number; signal: AbortSignal },
): Promise<Connection> {
  const { signal } = options
  const opening = Promise.withResolvers<void>()
  const connection = new Connection(target.origin, {
    opened: opening.resolve,
    received: () => connection.lose(new Error('the upstream spoke before it was asked')),
    lost: (cause) => opening.reject(whyUnopened(cause)),
  })
  const giveUp = (reason: unknown) => {
    connection.destroy()
    opening.reject(reason)
  }
  const onAbort = () => giveUp(signal.reason)
  const timer = setTimeout(() => giveUp(connectTimeout(options.connectMs)), options.connectMs)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    // Reached when there is no socket to report to: no such host, refused, no descriptor left.
    Promise.try(connectSocket, target, connection).catch((error: Error) => connection.lose(error))
    await opening.promise
    return connection
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

/** Bun calls it a refused connection when the process may open no more sockets, so we look. */
export function whyUnopened(cause: Error | null): AppError {
  return canOpen(1) ? unreachable(cause) : noDescriptorLeft()
}

export function unreachable(cause: Error | null): AppError {
  return new AppError('upstream_unreachable', 'The upstream could not be reached.', {
    cause: cause ?? new Error('the upstream closed the connection before it answered'),
  })
}

function connectTimeout(connectMs: number): AppError {
  return new AppError(
    'upstream_connect_timeout',
    'The upstream did not accept the connection in time.',
    { cause: new Error(`no connection after ${connectMs} ms`) },
  )
}

function connectSocket(target: Target, connection: Connection): Promise<unknown> {
  const { hostname, port } = target
  if (!target.tls) return Bun.connect({ hostname, port, data: connection, socket: plainHandlers })
  const tls = {
    serverName: target.serverName,
    // Stated, so that no environment variable can turn the verification off.
    rejectUnauthorized: true,
    // In the form of the TLS extension; Bun ignores any other without a word.
    ALPNProtocols: Buffer.from('\x08http/1.1'),
  }
  return Bun.connect({ hostname, port, data: connection, socket: tlsHandlers, tls })
}

// A throw in one of these reaches `error`, never the process.
const handlers: Bun.SocketHandler<Connection> = {
  data: ({ data }, bytes) => data.received(bytes),
  drain: ({ data }) => data.flush(),
  error: ({ data }, error) => data.lose(error),
  close: ({ data }, error) => data.lose(error ?? null),
}

const plainHandlers: Bun.SocketHandler<Connection> = {
  ...handlers,
  open(socket) {
    socket.data.attach(socket)
    socket.data.opened()
  },
}

const tlsHandlers: Bun.SocketHandler<Connection> = {
  ...handlers,
  open: (socket) => socket.data.attach(socket),
  handshake({ data }, authorized, error) {
    if (authorized && error === null) data.opened()
    else data.lose(error ?? new Error('the certificate of the upstream was not accepted'))
  },
}
