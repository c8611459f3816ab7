import type { Socket } from 'node:net'
import type { OriginQuestion } from './model-origin.ts'

export type Stored = {
  readonly content: Buffer
  readonly etag: string | null
  readonly hasRanges: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly pace: { readonly bytes: number; readonly everyMs: number } | null
}

/** The fault of a response. */
export type Fault =
  /** No response; the connection is closed. */
  | { kind: 'dropped' }
  /** The connection is closed after this many bytes of the body. */
  | { kind: 'cut'; afterBytes: number }
  /** After this many bytes of the body nothing is sent; a negative number omits the headers too. */
  | { kind: 'stall'; afterBytes: number }
  /** One byte at a time. */
  | { kind: 'trickle'; everyMs: number }
  /** The whole file with status 200, despite a range request. */
  | { kind: 'whole' }
  /** This byte of the file is changed. */
  | { kind: 'flipped'; at: number }
  /** Overrides headers, whatever the body is; null removes a header. */
  | { kind: 'headers'; headers: Readonly<Record<string, string | null>> }
  /** A compressed body that is this many bytes longer than announced. */
  | { kind: 'excess'; bytes: number }
  /** A compressed body that continues endlessly after the file. */
  | { kind: 'endless' }
  /** A compressed body that ends cleanly after this many bytes. */
  | { kind: 'short'; bytes: number }
  /** A compressed body with the right bytes and no length. */
  | { kind: 'chunked' }
  /** Compressed, although not requested. */
  | { kind: 'gzip' }
  /** A different response. */
  | { kind: 'status'; status: number; headers?: Readonly<Record<string, string>>; body?: string }
  /** From now on the file is a different one. */
  | { kind: 'replaced'; content: Uint8Array }

export type Connection = {
  readonly socket: Socket
  readonly question: OriginQuestion
  readonly count: (bytes: number) => void
}

type Headers = Record<string, string | number | null>
type Answer = { status: number; headers: Headers; body: Buffer; start: number }

const pieceBytes = 65_536
/**
 * A `fetch` whose connection ends immediately loses received bytes; a pause resembles a real
 * network.
 */
const beforeCutMs = 10

export async function answerHonestly(
  connection: Connection,
  stored: Stored | undefined,
): Promise<void> {
  const answer = honestAnswer(connection.question, stored)
  await send(connection, answer, { 'content-length': answer.body.length })
  await sendBody(connection, answer.body, stored?.pace ?? null)
}

export async function answerWrongly(
  connection: Connection,
  stored: Stored | undefined,
  fault: Fault,
): Promise<void> {
  const { socket, question } = connection
  if (fault.kind === 'dropped') return void socket.destroy()
  if (fault.kind === 'status') {
    const body = Buffer.from(fault.body ?? '')
    const { status, headers = {} } = fault
    const answer = { status, headers, body, start: 0 }
    await send(connection, answer, { 'content-length': body.length })
    return sendBody(connection, body, null)
  }
  const isWhole = fault.kind === 'whole'
  const answer = honestAnswer(isWhole ? { ...question, headers: {} } : question, stored)
  const { body } = answer
  const length = { 'content-length': body.length }
  const pace = stored?.pace ?? null
  const coded = { 'transfer-encoding': 'chunked' }
  switch (fault.kind) {
    case 'cut':
      await send(connection, answer, length)
      await sendBody(connection, body.subarray(0, fault.afterBytes), pace)
      await Bun.sleep(beforeCutMs)
      return void socket.end(() => socket.destroy())
    case 'stall':
      if (fault.afterBytes < 0) return
      await send(connection, answer, length)
      return sendBody(connection, body.subarray(0, fault.afterBytes), pace)
    case 'trickle':
      await send(connection, answer, length)
      return sendBody(connection, body, { bytes: 1, everyMs: fault.everyMs })
    case 'flipped':
      await send(connection, answer, length)
      return sendBody(connection, flip(body, fault.at - answer.start), pace)
    case 'headers':
      await send(connection, answer, { ...length, ...fault.headers })
      return sendBody(connection, body, pace)
    case 'gzip':
      return sendPacked(connection, answer)
    case 'excess':
    case 'endless':
    case 'short':
    case 'chunked':
      await send(connection, answer, coded)
      return sendCoded(connection, body, fault)
    default:
      await send(connection, answer, length)
      return sendBody(connection, body, pace)
  }
}

function honestAnswer({ headers: asked }: OriginQuestion, stored: Stored | undefined): Answer {
  if (stored === undefined) {
    return { status: 404, headers: {}, body: Buffer.from('not here'), start: 0 }
  }
  const { content, etag, hasRanges } = stored
  const headers: Headers = { ...stored.headers, ...(etag === null ? {} : { etag }) }
  if (hasRanges) headers['accept-ranges'] = 'bytes'
  const range = /^bytes=(\d+)-(\d*)$/.exec(asked['range'] ?? '')
  const isSame = asked['if-range'] === undefined || asked['if-range'] === etag
  if (range === null || !hasRanges || !isSame) {
    return { status: 200, headers, body: content, start: 0 }
  }
  const start = Number(range[1])
  const end = Math.min(range[2] === '' ? content.length : Number(range[2]) + 1, content.length)
  if (start >= content.length) {
    headers['content-range'] = `bytes */${content.length}`
    return { status: 416, headers, body: Buffer.alloc(0), start: 0 }
  }
  headers['content-range'] = `bytes ${start}-${end - 1}/${content.length}`
  return { status: 206, headers, body: content.subarray(start, end), start }
}

async function send({ socket }: Connection, answer: Answer, more: Headers): Promise<void> {
  const lines = Object.entries({ ...answer.headers, ...more })
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${value}\r\n`)
  await write(socket, Buffer.from(`HTTP/1.1 ${answer.status} Scripted\r\n${lines.join('')}\r\n`))
}

async function sendBody(
  { socket, question, count }: Connection,
  body: Buffer,
  pace: Stored['pace'],
): Promise<void> {
  if (question.method === 'HEAD') return
  const step = pace?.bytes ?? pieceBytes
  for (let at = 0; at < body.length && !socket.destroyed; at += step) {
    if (pace !== null) await Bun.sleep(pace.everyMs)
    const piece = body.subarray(at, at + step)
    count(piece.length)
    await write(socket, piece)
  }
}

/** The end of the body is marked unless the fault is that it is not. */
async function sendCoded(connection: Connection, body: Buffer, fault: Fault): Promise<void> {
  const { socket, count } = connection
  const put = (piece: Buffer) => {
    count(piece.length)
    return write(
      socket,
      Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
    )
  }
  const whole = fault.kind === 'short' ? body.subarray(0, fault.bytes) : body
  for (let at = 0; at < whole.length && !socket.destroyed; at += pieceBytes) {
    await put(whole.subarray(at, at + pieceBytes))
  }
  if (fault.kind === 'excess') await put(Buffer.alloc(fault.bytes, 'x'))
  while (fault.kind === 'endless' && !socket.destroyed) await put(Buffer.alloc(pieceBytes, 'x'))
  await write(socket, Buffer.from('0\r\n\r\n'))
}

async function sendPacked(connection: Connection, answer: Answer): Promise<void> {
  const packed = Buffer.from(Bun.gzipSync(new Uint8Array(answer.body)))
  await send(connection, answer, { 'content-encoding': 'gzip', 'content-length': packed.length })
  await sendBody(connection, packed, null)
}

function flip(body: Buffer, at: number): Buffer {
  const copy = Buffer.from(body)
  if (at >= 0 && at < copy.length) copy.writeUInt8(copy.readUInt8(at) ^ 0xff, at)
  return copy
}

/** At the speed of the client. */
async function write(socket: Socket, bytes: Buffer): Promise<void> {
  if (socket.destroyed) return
  if (socket.write(bytes)) return
  await new Promise<void>((resolve) => {
    const go = () => {
      socket.off('drain', go).off('close', go)
      resolve()
    }
    socket.on('drain', go).on('close', go)
  })
}
