import { connect, type Socket } from 'node:net'
import { createServer } from 'node:tls'
import { readCertificate } from '#test/inference/transport/scripted-server.ts'

/** TLS in front of a port on this machine, for clients that accept nothing else. */
export async function startTlsFront(port: number) {
  const sockets = new Set<Socket>()
  const server = createServer(readCertificate('localhost'), (socket) => {
    const behind = connect(port, '127.0.0.1')
    for (const each of [socket, behind]) {
      sockets.add(each)
      each.on('error', () => {})
      each.on('close', () => {
        behind.destroy()
        socket.destroy()
      })
    }
    socket.pipe(behind).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    url: `https://localhost:${address.port}`,
    stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
