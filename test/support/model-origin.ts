import { createHash } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { answerHonestly, answerWrongly, type Fault, type Stored } from './origin-answers.ts'

/** The received request; header names are lower case. */
export type OriginQuestion = {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

type PutOptions = {
  /** With quotes; null: none. Default: derived from the content. */
  etag?: string | null
  /** Whether ranges are supported; default true. */
  hasRanges?: boolean
  /** Additional headers of every response. */
  headers?: Readonly<Record<string, string>>
  /** Sends this many bytes at a time, with a pause before each. */
  pace?: { bytes: number; everyMs: number }
}

/**
 * A file server with scripted faults, written byte by byte, because no library misbehaves on
 * purpose.
 */
export type ModelOrigin = {
  readonly port: number
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly questions: readonly OriginQuestion[]
  /** Body bytes that were handed to sockets. */
  readonly bytesSent: () => number
  readonly openConnections: () => number
  /** Serves content at a path from now on; returns its URL. */
  put(path: string, content: Uint8Array, options?: PutOptions): string
  remove(path: string): void
  /** The next requests for this path have these faults, one each. */
  misbehave(path: string, ...faults: readonly Fault[]): void
  /** Every request for this path has this fault. */
  alwaysMisbehave(path: string, fault: Fault): void
  stop(): Promise<void>
}

const headBytesMax = 65_536

export async function startModelOrigin(): Promise<ModelOrigin> {
  const files = new Map<string, Stored>()
  const faults = new Map<string, Fault[]>()
  const lasting = new Map<string, Fault>()
  const sockets = new Set<Socket>()
  const questions: OriginQuestion[] = []
  let bytesSent = 0

  const answer = (socket: Socket, question: OriginQuestion) => {
    questions.push(question)
    const path = question.path.split('?')[0] ?? ''
    const fault = faults.get(path)?.shift() ?? lasting.get(path)
    const count = (bytes: number) => {
      bytesSent += bytes
    }
    const connection = { socket, question, count }
    const stored = files.get(path)
    if (fault === undefined) return answerHonestly(connection, stored)
    if (fault.kind === 'replaced') files.set(path, storedFile(fault.content))
    return answerWrongly(connection, files.get(path), fault)
  }
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let head = Buffer.alloc(0)
    socket.on('data', (piece: Buffer) => {
      head = Buffer.concat([head, piece])
      const end = head.indexOf('\r\n\r\n')
      if (head.length > headBytesMax) socket.destroy()
      if (end === -1 || socket.destroyed) return
      const question = readHead(head.toString('latin1', 0, end))
      head = head.subarray(end + 4)
      void answer(socket, question).catch(() => socket.destroy())
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const url = `http://127.0.0.1:${address.port}`

  return {
    port: address.port,
    url,
    questions,
    bytesSent: () => bytesSent,
    openConnections: () => sockets.size,
    put(path, content, options = {}) {
      files.set(path, storedFile(content, options))
      return `${url}${path}`
    },
    remove: (path) => void files.delete(path),
    misbehave: (path, ...list) => void faults.set(path, [...(faults.get(path) ?? []), ...list]),
    alwaysMisbehave: (path, fault) => void lasting.set(path, fault),
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

function storedFile(content: Uint8Array, options: PutOptions = {}): Stored {
  const digest = createHash('sha256').update(content).digest('hex')
  const { etag = `"${digest.slice(0, 16)}"`, hasRanges = true, headers = {}, pace = null } = options
  return {
    content: Buffer.from(content.buffer, content.byteOffset, content.length),
    etag,
    hasRanges,
    headers,
    pace,
  }
}

function readHead(text: string): OriginQuestion {
  const [first = '', ...lines] = text.split('\r\n')
  const [method = '', path = ''] = first.split(' ')
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  return { method, path, headers }
}
