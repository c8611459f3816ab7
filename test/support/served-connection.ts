import { connect, type Socket } from 'node:net'
import { openDescriptors } from './process.ts'
import { readTcpTable } from './tcp-table.ts'

/** A keep-alive connection with the worker that serves it. */
export type ServedConnection = {
  readonly workerPid: number
  exchange(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body?: string,
  ): Promise<{ status: number; body: string }>
  /** POSTs, and returns everything until the connection ends, regularly or not. */
  readToEnd(path: string, headers: Readonly<Record<string, string>>, body: string): Promise<string>
}

/** The kernel distributes connections at random: with this many, every worker gets one. */
const triesMax = 200

/** One connection to each of two workers that share a port. */
export async function openConnections(
  port: number,
  [first = 0, second = 0]: readonly number[],
): Promise<[ServedConnection, ServedConnection]> {
  const found = new Map<number, ServedConnection>()
  for (let tries = 0; tries < triesMax; tries++) {
    const connection = await openConnection(port, [first, second])
    found.set(connection.workerPid, connection)
    const [left, right] = [found.get(first), found.get(second)]
    if (left !== undefined && right !== undefined) return [left, right]
  }
  throw new Error(`of ${triesMax} connections, all went to one worker`)
}

async function openConnection(port: number, workers: readonly number[]): Promise<ServedConnection> {
  const socket = connect(port, '127.0.0.1')
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  // A worker has accepted the connection once it has responded on it.
  await exchange(socket, ['GET', '/livez', {}, ''])
  const inode = inodeOf({ serverPort: port, clientPort: socket.localPort ?? 0 })
  const workerPid = workers.find((pid) => openDescriptors(pid).includes(`socket:[${inode}]`))
  if (workerPid === undefined) throw new Error('no worker has the connection')
  return {
    workerPid,
    exchange: (method, path, headers, body = '') => exchange(socket, [method, path, headers, body]),
    readToEnd: (path, headers, body) =>
      readToEnd(socket, ['POST', path, { ...headers, connection: 'close' }, body]),
  }
}

/** The server end of a connection, from the table of the kernel. */
function inodeOf(ends: { serverPort: number; clientPort: number }): string {
  const row = readTcpTable().find(
    ({ localPort, remotePort }) => localPort === ends.serverPort && remotePort === ends.clientPort,
  )
  return row?.inode ?? ''
}

type Question = [
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string,
]

function readToEnd(socket: Socket, question: Question): Promise<string> {
  return new Promise((resolve) => {
    let received = ''
    socket.on('data', (piece: Buffer) => {
      received += piece.toString()
    })
    // A killed worker resets its connections.
    socket.on('error', () => {})
    socket.once('close', () => resolve(received))
    socket.write(renderRequest(question))
  })
}

/** These responses are short and have a content-length. */
function exchange(socket: Socket, question: Question) {
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    let received = ''
    const take = (piece: Buffer) => {
      received += piece.toString()
      const bodyStart = received.indexOf('\r\n\r\n') + 4
      const length = Number(/^content-length: (\d+)/im.exec(received)?.[1])
      if (bodyStart < 4 || received.length < bodyStart + length) return
      socket.off('data', take)
      resolve({ status: Number(received.slice(9, 12)), body: received.slice(bodyStart) })
    }
    socket.on('data', take)
    socket.once('close', () => reject(new Error('the connection was closed')))
    socket.write(renderRequest(question))
  })
}

function renderRequest([method, path, headers, body]: Question): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return (
    `${method} ${path} HTTP/1.1\r\nHost: gateway\r\n${lines.join('')}` +
    `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}
