/** Whoever a connection serves at the moment: its opening, a round trip, the pool. */
export type ConnectionOwner = {
  /** The connection is open and, with TLS, verified. */
  opened?(): void
  received(bytes: Buffer): void
  /** The connection is gone. `cause` is null when the other side has closed it in order. */
  lost(cause: Error | null): void
}

/** One socket to an upstream. It outlives the requests that it carries one after the other. */
export class Connection {
  readonly origin: string
  #owner: ConnectionOwner
  #socket: Bun.Socket<Connection> | null = null
  #requests = 0
  #unsent: Uint8Array | null = null
  #unsentFrom = 0
  #paused = false
  #closed = false

  constructor(origin: string, owner: ConnectionOwner) {
    this.origin = origin
    this.#owner = owner
  }

  /** Whether everything was handed to the kernel. */
  get flushed(): boolean {
    return this.#unsent === null
  }

  /** Whether it carried a request before the present one. */
  get reused(): boolean {
    return this.#requests > 1
  }

  /** A socket that is still connecting cannot be closed; one that was given up is closed here. */
  attach(socket: Bun.Socket<Connection>) {
    if (this.#closed) socket.terminate()
    else this.#socket = socket
  }

  handTo(owner: ConnectionOwner) {
    this.#owner = owner
  }

  send(request: Uint8Array) {
    this.#requests += 1
    this.#unsent = request
    this.#unsentFrom = 0
    if (this.#closed) this.#owner.lost(null)
    else this.flush()
  }

  /** Writes what the kernel takes; the rest waits for the next drain. */
  flush() {
    if (this.#unsent === null || this.#socket === null) return
    const length = this.#unsent.byteLength - this.#unsentFrom
    const written = this.#socket.write(this.#unsent, this.#unsentFrom, length)
    // A negative count says that the socket is closing, which its close event will report, after
    // an answer that may already lie in the kernel.
    this.#unsentFrom += Math.max(written, 0)
    if (written === length) this.#unsent = null
  }

  pause() {
    if (this.#paused) return
    this.#paused = true
    this.#socket?.pause()
  }

  resume() {
    if (!this.#paused) return
    this.#paused = false
    this.#socket?.resume()
  }

  opened() {
    if (!this.#closed) this.#owner.opened?.()
  }

  received(bytes: Buffer) {
    if (!this.#closed) this.#owner.received(bytes)
  }

  /** The socket has failed or was closed by the other side. */
  lose(cause: Error | null) {
    if (this.#closed) return
    this.destroy()
    this.#owner.lost(cause)
  }

  /** Closes in order; the owner is not told. */
  close() {
    const socket = this.#forget()
    // With TLS, `end` would keep the descriptor until the other side has answered, if ever.
    socket?.close()
  }

  /** Resets the connection within this tick; the owner is not told. */
  destroy() {
    const socket = this.#forget()
    socket?.terminate()
  }

  #forget(): Bun.Socket<Connection> | null {
    const socket = this.#socket
    this.#closed = true
    this.#socket = null
    this.#unsent = null
    return socket
  }
}
