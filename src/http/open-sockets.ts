/** An open WebSocket, as the shutdown sees it. */
type OpenSocket = {
  /** Accepts no more work, and closes when the current work is done. */
  drain(): void
  /** Whether work is in progress, or bytes are unsent. */
  isBusy(): boolean
}

/** The WebSockets of this process. */
export type OpenSockets = {
  /** Returns a function that removes it. */
  add(socket: OpenSocket): () => void
  count(): number
  /** The number of busy ones. */
  busy(): number
  drain(): void
}

export function createOpenSockets(): OpenSockets {
  const sockets = new Set<OpenSocket>()
  let isDraining = false
  return {
    add(socket) {
      sockets.add(socket)
      if (isDraining) socket.drain()
      return () => sockets.delete(socket)
    },
    count: () => sockets.size,
    busy() {
      let busy = 0
      for (const socket of sockets) if (socket.isBusy()) busy++
      return busy
    },
    drain() {
      isDraining = true
      for (const socket of [...sockets]) socket.drain()
    },
  }
}
