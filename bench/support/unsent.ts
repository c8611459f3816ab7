import type { Socket } from 'bun'

/** The part of a connection that its socket has not taken yet. */
export type Unsent = { unsent: Buffer }

/** A connection that asks on and on and reads nothing is cut off; no answer is longer. */
const unsentBytesMax = 64 * 1024 * 1024

/** Writes, after what waits already, and keeps what the socket does not take. */
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

/** For a socket that takes something again. */
export function sendUnsent(socket: Socket<Unsent>): void {
  const { unsent } = socket.data
  socket.data.unsent = Buffer.alloc(0)
  if (unsent.length > 0) send(socket, unsent)
}
