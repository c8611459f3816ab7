/** A WebSocket that is open, as far as the end of the process is concerned. */
export type OpenSocket = {
  /** Takes no more work, and closes once the work that runs is over. */
  drain(): void
  /** Whether work runs, or bytes wait for the client. */
  isBusy(): boolean
}

/** The WebSockets of this process. */
export type OpenSockets = {
  /** Returns what takes it out again. */
  add(socket: OpenSocket): () => void
  count(): number
  /** How many are busy. */
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
    busy: () => [...sockets].filter((socket) => socket.isBusy()).length,
    drain() {
      isDraining = true
      for (const socket of [...sockets]) socket.drain()
    },
  }
}
