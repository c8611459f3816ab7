import { createServer, type Socket } from 'node:net'

/**
 * A real HTTP server that returns scripted upstream responses byte for byte. Bodies of recorded
 * traffic come from `recordings.ts`.
 */
export type ReplayUpstream = {
  /** `http://127.0.0.1:<port>/v1` */
  readonly baseUrl: string
  /** Every request so far, in order. */
  readonly requests: readonly ReplayRequest[]
  readonly connections: {
    /** Open connections, including idle keep-alive ones. */
    open: number
    /** Closed connections, by either side. */
    closed: number
    /** Closed by the client before the response was complete. */
    aborted: number
  }
  /** Sent bytes of response bodies; constant while the client does not read. */
  readonly bodyBytesSent: () => number
  /** Replaces the response from the next request on. */
  answer(next: ReplayAnswer | ((request: ReplayRequest) => ReplayAnswer)): void
  /** Resolves when the condition holds; checked whenever a connection or request changes. */
  until(reached: (upstream: ReplayUpstream) => boolean): Promise<void>
  /** Aborts every response in progress, including those with `hang`. */
  cut(): void
  /** Closes every connection, and the server. */
  stop(): Promise<void>
}

export type ReplayRequest = {
  method: string
  /** `/v1/chat/completions` */
  path: string
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>
  body: string
}

export type ReplayAnswer = {
  /** Default: 200. */
  status?: number
  /** Default: `content-type: text/event-stream`. */
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** Byte offsets at which the body is split; each piece is a separate write. */
  cutsAt?: readonly number[]
  /** The pause before each piece after the first; by default one turn of the event loop. */
  pauseMs?: number
  /** Awaited before each piece after the first, instead of a pause. */
  nextPiece?: () => Promise<void>
  /**
   * `whole`: the body is complete. `cut`: the connection ends before the announced end of the body.
   * `hang`: nothing more is sent, and the connection stays open. `silent`: not even a head is sent.
   */
  ending?: 'whole' | 'cut' | 'hang' | 'silent'
}

export async function startReplayUpstream(
  first: ReplayAnswer | ((request: ReplayRequest) => ReplayAnswer),
): Promise<ReplayUpstream> {
  const sockets = new Set<Socket>()
  const requests: ReplayRequest[] = []
  const connections = { open: 0, closed: 0, aborted: 0 }
  const watchers = new Set<() => void>()
  let answering = first
  let bytesSent = 0

  const changed = () => {
    for (const check of watchers) check()
  }

  const server = createServer({ noDelay: true }, (socket) => {
    const connection: Connection = { socket, received: Buffer.alloc(0), answering: false }
    sockets.add(socket)
    connections.open++
    socket.on('data', (bytes: Buffer) => {
      connection.received = Buffer.concat([connection.received, bytes])
      const request = takeRequest(connection)
      if (request === null) return
      requests.push(request)
      changed()
      connection.answering = true
      const answer = typeof answering === 'function' ? answering(request) : answering
      void send(socket, answer, (count) => {
        bytesSent += count
      }).then((complete) => {
        if (complete) connection.answering = false
      })
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      sockets.delete(socket)
      connections.open--
      connections.closed++
      if (connection.answering) connections.aborted++
      changed()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0

  const upstream: ReplayUpstream = {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    connections,
    bodyBytesSent: () => bytesSent,
    answer(next) {
      answering = next
    },
    until: (reached) =>
      new Promise((resolve) => {
        const check = () => {
          if (!reached(upstream)) return
          watchers.delete(check)
          resolve()
        }
        watchers.add(check)
        check()
      }),
    cut() {
      for (const socket of sockets) socket.end()
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
  return upstream
}

type Connection = { socket: Socket; received: Buffer; answering: boolean }

/** The complete request, or null while it is incomplete; its body requires a content-length. */
function takeRequest(connection: Connection): ReplayRequest | null {
  const headEnd = connection.received.indexOf('\r\n\r\n')
  if (headEnd === -1) return null
  const [start = '', ...lines] = connection.received.toString('latin1', 0, headEnd).split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const bodyStart = headEnd + 4
  const bodyEnd = bodyStart + Number(headers['content-length'] ?? 0)
  if (connection.received.length < bodyEnd) return null
  const body = connection.received.toString('utf8', bodyStart, bodyEnd)
  connection.received = connection.received.subarray(bodyEnd)
  const [method = '', path = ''] = start.split(' ')
  return { method, path, headers, body }
}

/** Resolves to whether the response was sent completely, or ended as scripted. */
async function send(
  socket: Socket,
  answer: ReplayAnswer,
  sent: (byteCount: number) => void,
): Promise<boolean> {
  const ending = answer.ending ?? 'whole'
  if (ending === 'silent') return false
  await write(socket, renderHead(answer))
  for (const [index, piece] of divide(answer).entries()) {
    if (index > 0) await (answer.nextPiece?.() ?? pause(answer.pauseMs))
    if (socket.destroyed) return false
    await write(
      socket,
      Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
    )
    sent(piece.length)
  }
  if (ending === 'hang') return false
  if (ending === 'cut') socket.end()
  else await write(socket, '0\r\n\r\n')
  return !socket.destroyed
}

function renderHead(answer: ReplayAnswer): string {
  const headers = {
    'content-type': 'text/event-stream',
    ...answer.headers,
    'transfer-encoding': 'chunked',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${answer.status ?? 200} Replayed\r\n${lines.join('')}\r\n`
}

function divide(answer: ReplayAnswer): Buffer[] {
  const body = Buffer.from(answer.body ?? '')
  const bounds = [0, ...(answer.cutsAt ?? []), body.length]
  return bounds
    .slice(1)
    .map((end, index) => body.subarray(bounds[index], end))
    .filter((piece) => piece.length > 0)
}

/** Resolves when the bytes were sent, or the client disconnected. */
function write(socket: Socket, data: string | Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed || socket.write(data)) return resolve()
    const done = () => {
      socket.off('drain', done)
      socket.off('close', done)
      resolve()
    }
    socket.on('drain', done)
    socket.on('close', done)
  })
}

function pause(ms: number | undefined): Promise<void> {
  return new Promise((resolve) =>
    ms === undefined ? setImmediate(resolve) : setTimeout(resolve, ms),
  )
}
