import { connect, type Socket } from 'node:net'
import { checkEventStream } from './checked-fetch.ts'

/** A request over its own socket: `fetch` limits concurrent requests, and reads ahead. */
export type RawRequest = {
  readonly socket: Socket
  /** The response so far, including its head. */
  readonly bytesReceived: () => number
  /** The chunks of the body after the connection ended; throws if the body is incomplete. */
  chunks(): Promise<string[]>
  /** All chunks; streams are validated. */
  body(): Promise<string>
}

/** Default: /v1/responses. */
export type RawQuestion = { port: number; token: string; body: object; path?: string }

/** POSTs a body. A `paused` request reads nothing until its socket is resumed. */
export function sendRaw(question: RawQuestion, paused = false): RawRequest {
  const { port, token, body, path = '/v1/responses' } = question
  const text = JSON.stringify(body)
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${token}`,
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Connection: close',
  ]
  const pieces: Buffer[] = []
  let bytes = 0
  const socket = connect(port, '127.0.0.1')
  if (paused) socket.pause()
  socket.write(`${head.join('\r\n')}\r\n\r\n${text}`)
  const ended = new Promise<void>((resolve) => {
    socket.on('close', () => resolve())
    socket.on('error', () => resolve())
  })
  socket.on('data', (piece: Buffer) => {
    pieces.push(piece)
    bytes += piece.length
  })
  if (paused) socket.pause()
  const chunks = () => ended.then(() => readChunks(Buffer.concat(pieces)))
  return {
    socket,
    bytesReceived: () => bytes,
    chunks,
    async body() {
      const text = (await chunks()).join('')
      if (text.startsWith('event: ')) await checkEventStream(text, null)
      return text
    },
  }
}

/** Of an unexpected response. */
const shownBytes = 1_000

/** The chunks of a complete response. */
function readChunks(answer: Buffer): string[] {
  const chunks: string[] = []
  const bodyAt = answer.indexOf('\r\n\r\n') + 4
  if (!/transfer-encoding: chunked/i.test(answer.toString('latin1', 0, bodyAt))) {
    throw new Error(`the response is no stream: ${answer.toString('utf8', 0, shownBytes)}`)
  }
  for (let at = bodyAt; ; ) {
    const lineEnd = answer.indexOf('\r\n', at)
    const length = Number.parseInt(answer.toString('latin1', at, lineEnd), 16)
    if (lineEnd === -1 || Number.isNaN(length)) throw new Error('the body was cut off')
    if (length === 0) return chunks
    chunks.push(answer.toString('utf8', lineEnd + 2, lineEnd + 2 + length))
    at = lineEnd + 2 + length + 2
  }
}
