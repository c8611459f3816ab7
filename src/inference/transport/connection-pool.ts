import type { Connection, ConnectionOwner } from './connection.ts'

/** Expired connections that are closed at a time; each takes a system call, and streams wait meanwhile. */
export const closedPerSweepMax = 16

/** Idle connections by origin. The most recently used is reused first, so that the surplus expires. */
export class ConnectionPool {
  readonly #idleMs: number
  readonly #idlePerOriginMax: number
  /** Oldest first; origins without idle connections have no entry. */
  readonly #idle = new Map<string, IdleConnection[]>()
  #timer: Timer | null = null
  #closed = false

  constructor(options: { idleMs: number; idlePerOriginMax: number }) {
    this.#idleMs = options.idleMs
    this.#idlePerOriginMax = options.idlePerOriginMax
  }

  take(origin: string): Connection | null {
    const idle = this.#idle.get(origin)
    const newest = idle?.pop()
    if (idle?.length === 0) this.#idle.delete(origin)
    return newest?.connection ?? null
  }

  /** Keeps a connection for reuse; closes it when the pool is full. */
  put(connection: Connection) {
    const idle = this.#idle.get(connection.origin) ?? []
    if (this.#closed || idle.length >= this.#idlePerOriginMax) {
      connection.close()
      return
    }
    idle.push(new IdleConnection(connection, this))
    this.#idle.set(connection.origin, idle)
    this.#schedule()
  }

  remove(removed: IdleConnection) {
    const { origin } = removed.connection
    const idle = this.#idle.get(origin) ?? []
    const index = idle.indexOf(removed)
    if (index !== -1) idle.splice(index, 1)
    if (idle.length === 0) this.#idle.delete(origin)
  }

  /** Closes idle connections, and active ones when they are returned. */
  close() {
    this.#closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.closeIdle()
  }

  /** Closes idle connections, which frees their file descriptors. */
  closeIdle() {
    for (const { connection } of [...this.#idle.values()].flat()) connection.close()
    this.#idle.clear()
  }

  /** A single timer fires when the oldest connection may have expired. */
  #schedule() {
    if (this.#timer !== null || this.#idle.size === 0) return
    const oldest = Math.min(
      ...[...this.#idle.values()].map(([first]) => first?.sinceMs ?? Infinity),
    )
    this.#timer = setTimeout(
      () => {
        this.#timer = null
        this.#closeExpired()
        this.#schedule()
      },
      Math.max(oldest + this.#idleMs - performance.now(), 1),
    )
    this.#timer.unref()
  }

  #closeExpired() {
    const idleSinceMax = performance.now() - this.#idleMs
    let closable = closedPerSweepMax
    for (const [origin, idle] of this.#idle) {
      const kept = idle.findIndex(({ sinceMs }) => sinceMs > idleSinceMax)
      const expired = idle.splice(0, Math.min(kept === -1 ? idle.length : kept, closable))
      closable -= expired.length
      if (idle.length === 0) this.#idle.delete(origin)
      for (const { connection } of expired) connection.close()
    }
  }
}

class IdleConnection implements ConnectionOwner {
  readonly connection: Connection
  readonly sinceMs = performance.now()
  readonly #pool: ConnectionPool

  constructor(connection: Connection, pool: ConnectionPool) {
    this.connection = connection
    this.#pool = pool
    connection.setOwner(this)
  }

  /** Bytes without a request are not a response: the connection is broken. */
  received() {
    this.#pool.remove(this)
    this.connection.destroy()
  }

  lost() {
    this.#pool.remove(this)
  }
}
