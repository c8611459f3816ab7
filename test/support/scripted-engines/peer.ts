import type { Server, ServerWebSocket } from 'bun'
import { eventually } from '#test/support/eventually.ts'

/** A scripted WebSocket server on loopback that simulates a speech server. */
export type Peer = {
  /** ws://127.0.0.1:port, without a path. */
  readonly url: string
  /** All connections so far, including closed ones. */
  readonly connections: readonly PeerConnection[]
  /** All upgrade requests, including refused ones. */
  readonly requests: readonly PeerRequest[]
  /** Resolves with the connection of this index once it is open. */
  connection(index?: number): Promise<PeerConnection>
  stop(): Promise<void>
}

type PeerRequest = { readonly url: URL; readonly headers: Headers }

export type PeerConnection = {
  readonly request: PeerRequest
  /** The text frames of the client. */
  readonly texts: readonly string[]
  /** Null while it is open. */
  readonly closed: { readonly code: number; readonly reason: string } | null
  send(frame: unknown): void
  /** Sends data unencoded. */
  sendRaw(frame: string | Uint8Array): void
  /** Sends several frames that arrive in one read. */
  sendTogether(frames: readonly unknown[]): void
  ping(): void
  close(code?: number, reason?: string): void
  /** Closes without a closing handshake. */
  vanish(): void
  stopReading(): void
}

export type PeerScript = {
  /** The status for every upgrade. */
  readonly refuse?: number | undefined
  /** Whether upgrades stay unanswered. */
  readonly silent?: boolean | undefined
  readonly upgradeDelayMs?: number | undefined
  /** The status for this request; null: accepted. */
  refusal?(request: PeerRequest): number | null
  opened?(connection: PeerConnection): void
  text?(connection: PeerConnection, text: string): void
  binary?(connection: PeerConnection, bytes: Buffer): void
}

const frameBytesMax = 1_048_576

export function startPeer(script: PeerScript): Peer {
  const connections: PeerConnection[] = []
  const requests: PeerRequest[] = []
  const server: Server<SocketData> = Bun.serve<SocketData>({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request, own) {
      const upgrade = { url: new URL(request.url), headers: request.headers }
      requests.push(upgrade)
      if (script.silent === true) await new Promise(() => {})
      if (script.upgradeDelayMs !== undefined) await Bun.sleep(script.upgradeDelayMs)
      const status = script.refuse ?? script.refusal?.(upgrade) ?? null
      if (status !== null) return new Response('no', { status })
      const data: SocketData = { request: upgrade, connection: null }
      return own.upgrade(request, { data }) ? undefined : new Response('no', { status: 400 })
    },
    websocket: {
      maxPayloadLength: frameBytesMax,
      open(socket) {
        const connection = wrapSocket(socket)
        socket.data.connection = connection
        connections.push(connection)
        script.opened?.(connection)
      },
      message(socket, message) {
        const { connection } = socket.data
        if (connection === null) return
        if (typeof message !== 'string') return script.binary?.(connection, Buffer.from(message))
        connection.texts.push(message)
        script.text?.(connection, message)
      },
      close(socket, code, reason) {
        if (socket.data.connection !== null) socket.data.connection.closed = { code, reason }
      },
    },
  })
  return {
    url: `ws://127.0.0.1:${server.port}`,
    connections,
    requests,
    async connection(index = 0) {
      await eventually(`connection ${index} is there`, () => connections.length > index)
      const connection = connections[index]
      if (connection === undefined) throw new Error('no such connection')
      return connection
    },
    stop: () => server.stop(true),
  }
}

type SocketData = { request: PeerRequest; connection: Wrapped | null }
type Wrapped = PeerConnection & { texts: string[]; closed: { code: number; reason: string } | null }

function wrapSocket(socket: ServerWebSocket<SocketData>): Wrapped {
  const send = (frame: unknown) => void socket.sendText(JSON.stringify(frame))
  return {
    request: socket.data.request,
    texts: [],
    closed: null,
    send,
    sendRaw(frame) {
      if (typeof frame === 'string') socket.sendText(frame)
      else socket.sendBinary(frame)
    },
    sendTogether(frames) {
      socket.cork(() => frames.forEach(send))
    },
    ping: () => void socket.ping(),
    close: (code, reason) => socket.close(code, reason),
    vanish: () => socket.terminate(),
    stopReading: () => socket.pause(),
  }
}
