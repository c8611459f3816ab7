import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from './free-port.ts'

/** A connection to a server that can be cut: connections break, and new ones are refused. */
export type TcpProxy = {
  readonly port: number
  goDown(): Promise<void>
  comeUp(): Promise<void>
  /** Connections stay open and new ones are accepted, and nothing is forwarded. */
  freeze(): void
  thaw(): void
  stop(): Promise<void>
}

export async function startTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let isFrozen = false
  const track = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  }
  const accept = (client: Socket) => {
    const server = connect(target)
    track(client)
    track(server)
    client.pipe(server).on('close', () => client.destroy())
    server.pipe(client).on('close', () => server.destroy())
    if (isFrozen) for (const socket of [client, server]) socket.pause()
  }
  const port = freePort()
  let listener = await listen(accept, port)
  const goDown = async () => {
    const closed = new Promise<void>((resolve) => listener.close(() => resolve()))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return {
    port,
    goDown,
    stop: goDown,
    freeze() {
      isFrozen = true
      for (const socket of sockets) socket.pause()
    },
    thaw() {
      isFrozen = false
      for (const socket of sockets) socket.resume()
    },
    async comeUp() {
      listener = await listen(accept, port)
    },
  }
}

function listen(accept: (client: Socket) => void, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const listener = createServer(accept)
    listener.on('error', reject)
    listener.listen(port, '127.0.0.1', () => resolve(listener))
  })
}
