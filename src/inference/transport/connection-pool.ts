import type { Connection, ConnectionOwner } from './connection.ts'

/** Idle connections, by origin. The one used last is used next, so that the surplus ages out. */
export class ConnectionPool {
  readonly #idleMs: number
  readonly #idlePerOriginMax: number
  /** Oldest first. An origin without idle connections has no entry. */
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

  /** Keeps a connection for the next request, or closes it when enough are kept. */
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

  forget(gone: IdleConnection) {
    const { origin } = gone.connection
    const others = this.#idle.get(origin)?.filter((idle) => idle !== gone) ?? []
    if (others.length === 0) this.#idle.delete(origin)
    else this.#idle.set(origin, others)
  }

  /** Closes what is idle now and what would become idle later. */
  close() {
    this.#closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.closeIdle()
  }

  /** Gives back the descriptors of all that nobody uses. */
  closeIdle() {
    for (const { connection } of [...this.#idle.values()].flat()) connection.close()
    this.#idle.clear()
  }

  /** One timer for all: it fires when the oldest connection may have come of age. */
  #schedule() {
    if (this.#timer !== null || this.#idle.size === 0) return
    const oldest = Math.min(
      ...[...this.#idle.values()].map(([first]) => first?.sinceMs ?? Infinity),
    )
    this.#timer = setTimeout(
      () => {
        this.#timer = null
        this.#closeAged()
        this.#schedule()
      },
      Math.max(oldest + this.#idleMs - performance.now(), 1),
    )
    this.#timer.unref()
  }

  #closeAged() {
    const bornBefore = performance.now() - this.#idleMs
    for (const idle of [...this.#idle.values()].flat()) {
      if (idle.sinceMs > bornBefore) continue
      this.forget(idle)
      idle.connection.close()
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
    connection.handTo(this)
  }

  /** Nobody has asked for anything: whatever comes is no answer. */
  received() {
    this.#pool.forget(this)
    this.connection.destroy()
  }

  lost() {
    this.#pool.forget(this)
  }
}
