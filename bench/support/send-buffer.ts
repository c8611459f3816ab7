import type { Socket } from 'bun'

/** Data that the socket has not accepted yet. */
export type Unsent = { unsent: Buffer }

/** Limit of unsent data per connection, for clients that never read. */
const unsentBytesMax = 64 * 1024 * 1024

/** Queues and writes; keeps what the socket does not accept. */
export function send(socket: Socket<Unsent>, bytes: Buffer): void {
  const connection = socket.data
  if (connection.unsent.length > 0) {
    connection.unsent = Buffer.concat([connection.unsent, bytes])
    if (connection.unsent.length > unsentBytesMax) socket.terminate()
    return
  }
  const written = Math.max(0, socket.write(bytes))
  if (written < bytes.length) connection.unsent = bytes.subarray(written)
}

/** Continues on drain. */
export function sendUnsent(socket: Socket<Unsent>): void {
  const { unsent } = socket.data
  socket.data.unsent = Buffer.alloc(0)
  if (unsent.length > 0) send(socket, unsent)
}
