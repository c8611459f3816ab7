import { bytesOf, type RenderedRequest } from './http1-request.ts'

/**
 * Receives the events of a connection: its opening, a round trip, or the pool. The socket refers to it, and not
 * to the connection, which would be cold in cache at each read.
 */
export type ConnectionOwner = {
  /** Null once it owns none. */
  readonly connection: Connection | null
  /** The connection is open and, with TLS, verified. */
  opened?(): void
  received(bytes: Buffer): void
  /** The connection failed. `cause` is null when the upstream closed it cleanly. */
  lost(cause: Error | null): void
}

/**
 * Silence after which the kernel asks whether the peer still exists. After ten unanswered probes, a second
 * apart, the connection fails: a machine that vanished closes nothing.
 */
const keepAliveMs = 5_000

export type UpstreamSocket = Bun.Socket<ConnectionOwner>

/** One socket to an upstream. It serves consecutive requests. */
export class Connection {
  readonly origin: string
  #owner: ConnectionOwner
  #socket: UpstreamSocket | null = null
  #requests = 0
  /** Waits for the end of this turn of the event loop. */
  #request: RenderedRequest | null = null
  #unsent: Uint8Array | null = null
  #unsentFrom = 0
  #paused = false
  #closed = false

  constructor(origin: string, owner: ConnectionOwner) {
    this.origin = origin
    this.#owner = owner
  }

  /** Whether all bytes were handed to the kernel. */
  get flushed(): boolean {
    return this.#request === null && this.#unsent === null
  }

  /** Whether it served an earlier request. */
  get reused(): boolean {
    return this.#requests > 1
  }

  /** A connecting socket cannot be closed, so a connection that was closed meanwhile is terminated here. */
  attach(socket: UpstreamSocket) {
    if (this.#closed) socket.terminate()
    else {
      socket.setKeepAlive(true, keepAliveMs)
      this.#socket = socket
    }
  }

  setOwner(owner: ConnectionOwner) {
    this.#owner = owner
    if (this.#socket !== null) this.#socket.data = owner
  }

  /** Sends the request at the end of this turn of the event loop. */
  send(request: RenderedRequest) {
    this.#requests += 1
    if (this.#closed) this.#owner.lost(null)
    else {
      this.#request = request
      sendLater(this)
    }
  }

  /** Sends a request that waits. The connection may have been closed meanwhile. */
  sendNow() {
    const request = this.#request
    if (request === null) return
    this.#request = null
    this.#unsent = bytesOf(request)
    this.#unsentFrom = 0
    this.flush()
    // The bytes are valid until the next request is rendered.
    if (this.#unsent !== null) this.#unsent = new Uint8Array(this.#unsent)
  }

  /** Writes what the kernel accepts; the rest follows on drain. */
  flush() {
    if (this.#unsent === null || this.#socket === null) return
    const length = this.#unsent.byteLength - this.#unsentFrom
    const written = this.#socket.write(this.#unsent, this.#unsentFrom, length)
    // Negative: the socket is closing. Its close event follows, after a response that the kernel may
    // already hold.
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

  /** The socket failed or was closed by the upstream. */
  lose(cause: Error | null) {
    if (this.#closed) return
    this.destroy()
    this.#owner.lost(cause)
  }

  /** Closes cleanly, without notifying the owner. */
  close() {
    // With TLS, `end` would keep the descriptor until the upstream responds.
    this.#detach()?.close()
  }

  /** Resets the connection within this tick, without notifying the owner. */
  destroy() {
    this.#detach()?.terminate()
  }

  #detach(): UpstreamSocket | null {
    const socket = this.#socket
    this.#closed = true
    this.#socket = null
    this.#request = null
    this.#unsent = null
    return socket
  }
}

const waiting: Connection[] = []

/**
 * The requests of one turn are sent together. Each send has the kernel wake an upstream on this machine, and
 * one that is awake takes the next request without.
 */
function sendLater(connection: Connection): void {
  if (waiting.push(connection) === 1) setImmediate(sendAll)
}

function sendAll(): void {
  for (const connection of waiting.splice(0)) connection.sendNow()
}
