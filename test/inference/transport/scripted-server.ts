import { readFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import tls from 'node:tls'

export type ReceivedRequest = { head: string; body: Buffer }

/** One connection, as the server sees it. */
export class Peer {
  readonly socket: net.Socket
  /** Resolves to `end` or to the code of the error that ended the connection. */
  readonly closed: Promise<string>
  bytesReceived = 0
  #received: Buffer[] = []
  #requests: ReceivedRequest[] = []
  #waiting: ((request: ReceivedRequest) => void)[] = []

  constructor(socket: net.Socket) {
    this.socket = socket
    this.closed = new Promise((resolve) => {
      socket.on('error', (error) => resolve('code' in error ? String(error.code) : error.message))
      socket.on('close', () => resolve('end'))
    })
    socket.on('data', (bytes) => {
      this.bytesReceived += bytes.length
      this.#received.push(Buffer.from(bytes))
      this.#takeRequests()
    })
  }

  /** The next complete request. */
  nextRequest(): Promise<ReceivedRequest> {
    const request = this.#requests.shift()
    if (request !== undefined) return Promise.resolve(request)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  write(text: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text, () =>
        resolve(),
      )
    })
  }

  end(text = '') {
    this.socket.end(Buffer.from(text, 'latin1'))
  }

  /** Sends RST. */
  reset() {
    this.socket.resetAndDestroy()
  }

  #takeRequests() {
    const first = this.#received[0]?.indexOf('\r\n\r\n') ?? -1
    if (first === -1 && this.#received.length > 1) this.#received = [Buffer.concat(this.#received)]
    const headEnd = this.#received[0]?.indexOf('\r\n\r\n') ?? -1
    if (headEnd === -1) return
    const head = this.#received[0]?.toString('latin1', 0, headEnd) ?? ''
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0)
    const total = this.#received.reduce((sum, { length }) => sum + length, 0)
    const end = headEnd + 4 + length
    if (total < end) return
    const all = Buffer.concat(this.#received)
    this.#received = all.length > end ? [all.subarray(end)] : []
    const request = { head, body: all.subarray(headEnd + 4, end) }
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#requests.push(request)
    else waiting(request)
  }
}

export type ScriptedServer = {
  readonly port: number
  readonly url: string
  /** Every accepted connection, in order. */
  readonly peers: readonly Peer[]
  /** How many of them are open. */
  open(): number
  stop(): void
}

export type Script = (peer: Peer, index: number) => Promise<void> | void

/** A server that runs a script for each connection that it accepts. */
export async function serveScript(
  script: Script,
  options: { host?: string; certificate?: string } = {},
): Promise<ScriptedServer> {
  const peers: Peer[] = []
  const sockets = new Set<net.Socket>()
  const accept = (socket: net.Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.setNoDelay(true)
    const peer = new Peer(socket)
    peers.push(peer)
    void Promise.resolve(script(peer, peers.length - 1)).catch(() => peer.socket.destroy())
  }
  const { certificate } = options
  const server =
    certificate === undefined
      ? net.createServer(accept)
      : tls.createServer(
          { ...readCertificate(certificate), ALPNProtocols: ['h2', 'http/1.1'] },
          accept,
        )
  server.on('tlsClientError', () => {})
  const host = options.host ?? '127.0.0.1'
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const name = host.includes(':') ? `[${host}]` : host
  return {
    port: address.port,
    url: `${certificate === undefined ? 'http' : 'https'}://${name}:${address.port}`,
    peers,
    open: () => sockets.size,
    stop() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

export const tlsFixtures = join(import.meta.dir, '../../fixtures/tls')

export function readCertificate(name: string) {
  return {
    cert: readFileSync(join(tlsFixtures, `${name}.pem`)),
    key: readFileSync(join(tlsFixtures, `${name}.key`)),
  }
}

/**
 * A script that sends the same bytes for every request on a connection; the first responses wait
 * until that many requests have arrived.
 */
export function answering(text: string, togetherCount = 1): Script {
  let asked = 0
  const together = Promise.withResolvers<void>()
  return async (peer) => {
    while (true) {
      await peer.nextRequest()
      asked += 1
      if (asked === togetherCount) together.resolve()
      await together.promise
      await peer.write(text)
    }
  }
}

export const okAnswer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
export const chunkedHead = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
export const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
export const lastChunk = '0\r\n\r\n'
