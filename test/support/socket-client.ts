import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { checkEventStream } from './checked-fetch.ts'
import { eventually } from './eventually.ts'

/**
 * A WebSocket client with byte-level control: it can stop reading, disconnect, send what no library
 * sends, and record what it received.
 */
export type SocketClient = {
  readonly socket: Socket
  /** The head of the handshake response. */
  readonly head: string
  /** The text frames so far. */
  readonly texts: readonly string[]
  readonly bytesReceived: () => number
  /** The code of the received close frame, if any. */
  readonly closeCode: () => number | null
  readonly isClosed: () => boolean
  /** Resolves when the server has read what was sent. */
  arrived(): Promise<void>
  send(value: unknown): void
  sendFrame(opcode: number, payload: string | Uint8Array, firstBits?: number): void
  /** The text frames after the first `after`, once there are `count` of them. */
  read(count: number, after?: number): Promise<JsonObject[]>
  /**
   * Requests a response and reads its events to the end, which are validated, or one error frame.
   */
  turn(body: object): Promise<SocketResponse>
}

export type SocketResponse = {
  readonly events: readonly JsonObject[]
  /** The response of the last event; undefined after an error frame. */
  readonly response: JsonObject | undefined
  readonly failure: { status: unknown; code: unknown; message: unknown } | undefined
}

const terminal = /^\{"type":"response\.(completed|incomplete|failed)"/
const fin = 0x80
const opcodes = { text: 1, close: 8, ping: 9, pong: 10 }

/** With `ca` over TLS. */
export async function openSocket(
  port: number,
  { path = '/v1/responses', headers = {} as Record<string, string>, pongs = true, ca = '' } = {},
): Promise<SocketClient> {
  const socket =
    ca === '' ? connect(port, '127.0.0.1') : connectTls({ port, host: '127.0.0.1', ca })
  const key = randomBytes(16).toString('base64')
  const head = [
    `GET ${path} HTTP/1.1`,
    'Host: gateway',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${key}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ]
  const texts: string[] = []
  const received = createPieces()
  let answerHead: string | null = null
  let bytes = 0
  let closeCode: number | null = null
  let isClosed = false
  let pingsSent = 0
  let pongsReceived = 0

  const sendFrame = (opcode: number, payload: string | Uint8Array, firstBits = fin) => {
    if (!socket.destroyed) socket.write(frameOf(firstBits | opcode, Buffer.from(payload)))
  }
  const take = (frame: ServerFrame) => {
    if (frame.opcode === opcodes.text) texts.push(frame.payload.toString())
    if (frame.opcode === opcodes.close) closeCode = frame.payload.readUInt16BE(0)
    if (frame.opcode === opcodes.pong) pongsReceived++
    if (frame.opcode === opcodes.ping && pongs) sendFrame(opcodes.pong, frame.payload)
  }
  socket.on('data', (piece: Buffer) => {
    bytes += piece.length
    received.add(piece)
    answerHead ??= received.takeHead()
    if (answerHead === null) return
    for (let frame = received.takeFrame(); frame !== null; frame = received.takeFrame()) take(frame)
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    isClosed = true
  })
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  await eventually('the handshake is answered', () => answerHead !== null || isClosed)

  const client: SocketClient = {
    socket,
    head: answerHead ?? '',
    texts,
    bytesReceived: () => bytes,
    closeCode: () => closeCode,
    isClosed: () => isClosed,
    async arrived() {
      const own = ++pingsSent
      sendFrame(opcodes.ping, '')
      await eventually('the ping is answered', () => pongsReceived >= own || isClosed)
    },
    sendFrame,
    send: (value) => sendFrame(opcodes.text, JSON.stringify(value)),
    async read(count, after = 0) {
      await eventually(`${count} frames have come`, () => texts.length >= after + count || isClosed)
      return texts.slice(after).map(readText)
    },
    async turn(body) {
      const after = texts.length
      client.send({ type: 'response.create', ...body })
      const isOver = () => texts.slice(after).some((text) => terminal.test(text) || isRefusal(text))
      await eventually('the turn is over', () => isOver() || isClosed)
      return readTurn(texts.slice(after))
    },
  }
  return client
}

/** Validates the events of one response like those of a stream. */
export async function readTurn(texts: readonly string[]): Promise<SocketResponse> {
  const events = texts.map(readText)
  const [first] = events
  if (texts.length === 1 && first !== undefined && isRefusal(texts[0] ?? '')) {
    const { code, message } = Object(first['error'])
    return { events, response: undefined, failure: { status: first['status'], code, message } }
  }
  const wire = texts.map((text, at) => `event: ${events[at]?.['type']}\ndata: ${text}\n\n`)
  await checkEventStream(`${wire.join('')}data: [DONE]\n\n`, null)
  const response = events.at(-1)?.['response']
  return { events, response: isRecord(response) ? response : undefined, failure: undefined }
}

/** An error frame, as opposed to the error event of a stream. */
function isRefusal(text: string): boolean {
  return text.startsWith('{"type":"error","status":')
}

function readText(text: string): JsonObject {
  const value = parseJson(text)
  if (!isRecord(value)) throw new Error(`not an event: ${text.slice(0, 100)}`)
  return value
}

/** A masked frame; the mask is zero, so the payload is unchanged. */
function frameOf(first: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([first]), lengthOf(payload), Buffer.alloc(4), payload])
}

function lengthOf({ length }: Buffer): Buffer {
  const masked = 0x80
  if (length < 126) return Buffer.from([masked | length])
  const long = length > 0xffff
  const bytes = Buffer.alloc(long ? 9 : 3)
  bytes[0] = masked | (long ? 127 : 126)
  if (long) bytes.writeBigUInt64BE(BigInt(length), 1)
  else bytes.writeUInt16BE(length, 1)
  return bytes
}

type ServerFrame = { opcode: number; payload: Buffer }

const headEnd = '\r\n\r\n'

/** Received bytes that were not consumed; joined only when they contain a complete frame. */
function createPieces() {
  let pieces: Buffer[] = []
  let length = 0
  let wanted = 0
  const joined = () => {
    const [first = Buffer.alloc(0), ...rest] = pieces
    if (rest.length > 0) pieces = [Buffer.concat(pieces)]
    return pieces[0] ?? first
  }
  const drop = (bytes: number) => {
    pieces = [joined().subarray(bytes)]
    length -= bytes
    wanted = 0
  }
  return {
    add(piece: Buffer) {
      pieces.push(piece)
      length += piece.length
    },
    takeHead(): string | null {
      const end = joined().indexOf(headEnd)
      if (end === -1) return null
      const head = joined().toString('latin1', 0, end)
      drop(end + headEnd.length)
      return head
    },
    /** Servers send frames without a mask. */
    takeFrame(): ServerFrame | null {
      if (length < Math.max(wanted, 2)) return null
      const bytes = joined()
      const short = (bytes[1] ?? 0) & 0x7f
      const start = short === 127 ? 10 : short === 126 ? 4 : 2
      wanted = start
      if (length < wanted) return null
      wanted += short === 127 ? Number(bytes.readBigUInt64BE(2)) : short
      if (short === 126) wanted = start + bytes.readUInt16BE(2)
      if (length < wanted) return null
      const payload = bytes.subarray(start, wanted)
      drop(wanted)
      return { opcode: (bytes[0] ?? 0) & 0x0f, payload }
    },
  }
}
