/**
 * An inference server that costs almost nothing: its own process, plain TCP, frames encoded once
 * and shared by all streams, one timer for all of them. It speaks chat completions and Responses,
 * and answers as the plan in the prompt says.
 *
 *     bun bench/mock-upstream.ts [lifetime in seconds]
 *
 * It prints `{"port":…}` when it listens, and ends when its standard input does or its lifetime is
 * over. `GET /stats` tells how late its own timer was.
 */
import type { Socket } from 'bun'
import { isRecord, parseJson } from '#lib/json.ts'
import { Histogram } from './support/histogram.ts'
import {
  chatFrames,
  type MockFrames,
  type Protocol,
  responsesFrames,
} from './support/mock-frames.ts'
import {
  createSchedule,
  modelName,
  type Plan,
  readPlan,
  tokenText,
  wallClockMs,
} from './support/plan.ts'
import { type HttpRequest, RequestReader } from './support/request-reader.ts'
import { TimerWheel } from './support/timer-wheel.ts'

/** A reader that leaves so much unread is cut off. */
const unsentBytesMax = 4 * 1024 * 1024
const defaultLifetimeS = 7200

type Connection = { reader: RequestReader; unsent: Buffer; streams: Set<PacedStream> }

type PacedStream = {
  readonly socket: Socket<Connection>
  readonly plan: Plan
  readonly frames: MockFrames
  readonly tokenChunk: (index: number) => Buffer
  readonly wantsUsage: boolean
  readonly startedMs: number
  readonly firstToken: string
  readonly nextDueMs: () => number
  /** The next token to send; `plan.tokens` when only the end is left. */
  index: number
  dueMs: number
  closed: boolean
}

const framesOf: Record<Protocol, MockFrames> = { chat: chatFrames, responses: responsesFrames }
const lateness = new Histogram()
const wheel = new TimerWheel<PacedStream>(sendDue)
let streamsOpen = 0
let requestsTotal = 0

function answer(socket: Socket<Connection>, request: HttpRequest): void {
  requestsTotal++
  const route = `${request.method} ${request.path}`
  if (route === 'POST /v1/chat/completions') generate(socket, 'chat', request.body)
  else if (route === 'POST /v1/responses') generate(socket, 'responses', request.body)
  else if (route === 'GET /v1/models') sendJson(socket, 200, modelList())
  else if (route === 'GET /stats') sendJson(socket, 200, stats())
  else sendJson(socket, 404, JSON.stringify({ error: { message: `no route ${route}` } }))
}

function generate(socket: Socket<Connection>, protocol: Protocol, body: string): void {
  const request = parseJson(body)
  const plan = readPlan(body)
  if (!isRecord(request) || plan === undefined) {
    sendJson(socket, 400, JSON.stringify({ error: { message: 'the prompt has no plan' } }))
  } else if (request['stream'] === true) {
    const options = request['stream_options']
    const wantsUsage = isRecord(options) && options['include_usage'] === true
    startStream(socket, { plan, protocol, wantsUsage })
  } else {
    sendJson(socket, 200, framesOf[protocol].body(plan, textOf(plan, wallClockMs())))
  }
}

function startStream(
  socket: Socket<Connection>,
  request: { plan: Plan; protocol: Protocol; wantsUsage: boolean },
): void {
  const { plan, protocol, wantsUsage } = request
  const nowMs = performance.now()
  const startedMs = plan.stepMs === 0 ? nowMs : Math.ceil(nowMs / plan.stepMs) * plan.stepMs
  const frames = framesOf[protocol]
  const nextDueMs = createSchedule(plan)
  const stream: PacedStream = {
    socket,
    plan,
    frames,
    tokenChunk: tokenChunksOf(protocol, plan),
    wantsUsage,
    startedMs,
    firstToken: tokenText(plan, 0, performance.timeOrigin + startedMs),
    nextDueMs,
    index: 0,
    dueMs: startedMs + nextDueMs(),
    closed: false,
  }
  streamsOpen++
  socket.data.streams.add(stream)
  const head =
    'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n' +
    'Transfer-Encoding: chunked\r\n\r\n'
  sendTokens(stream, nowMs, [Buffer.from(head), chunk(frames.opening())])
}

function sendDue(stream: PacedStream, nowMs: number): void {
  if (stream.closed) return
  lateness.record(nowMs - stream.dueMs)
  sendTokens(stream, nowMs, [])
}

/** Sends every token that is due in one write, then waits for the next, or ends the stream. */
function sendTokens(stream: PacedStream, nowMs: number, parts: Buffer[]): void {
  const { plan } = stream
  while (stream.index < plan.tokens && stream.dueMs <= nowMs) {
    const isFirst = stream.index === 0
    parts.push(
      isFirst ? chunk(stream.frames.token(stream.firstToken, 0)) : stream.tokenChunk(stream.index),
    )
    stream.index++
    const atEnd = stream.index === plan.tokens
    stream.dueMs = stream.startedMs + (atEnd ? endMs(stream) : stream.nextDueMs())
  }
  const ends = stream.index === plan.tokens && stream.dueMs <= nowMs
  if (ends) {
    const text = stream.firstToken + laterTokens(plan)
    parts.push(chunk(stream.frames.closing(plan, text, stream.wantsUsage)), lastChunk)
    forget(stream)
  }
  const [only] = parts
  send(stream.socket, parts.length === 1 && only !== undefined ? only : Buffer.concat(parts))
  if (!ends) wheel.add(stream)
}

function endMs(stream: PacedStream): number {
  return Math.max(stream.dueMs - stream.startedMs, stream.plan.lastsMs)
}

function forget(stream: PacedStream): void {
  if (stream.closed) return
  stream.closed = true
  streamsOpen--
  stream.socket.data.streams.delete(stream)
}

const lastChunk = Buffer.from('0\r\n\r\n')

function chunk(text: string): Buffer {
  return Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`)
}

/** The encoded chunk of each token after the first, made once and shared by all streams. */
const tokenChunks = new Map<string, Buffer[]>()

function tokenChunksOf(protocol: Protocol, plan: Plan): (index: number) => Buffer {
  const key = `${protocol} ${plan.tokenBytes}`
  const known = tokenChunks.get(key) ?? []
  tokenChunks.set(key, known)
  return (index) => {
    const found = known[index]
    if (found !== undefined) return found
    const made = chunk(framesOf[protocol].token(tokenText(plan, index, 0), index))
    known[index] = made
    return made
  }
}

function laterTokens(plan: Plan): string {
  let text = ''
  for (let index = 1; index < plan.tokens; index++) text += tokenText(plan, index, 0)
  return text
}

function textOf(plan: Plan, startedAtMs: number): string {
  return tokenText(plan, 0, startedAtMs) + laterTokens(plan)
}

function sendJson(socket: Socket<Connection>, status: number, body: string): void {
  const head =
    `HTTP/1.1 ${status} ${status === 200 ? 'OK' : 'Refused'}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  send(socket, Buffer.from(head + body))
}

function send(socket: Socket<Connection>, bytes: Buffer): void {
  const connection = socket.data
  if (connection.unsent.length > 0) {
    connection.unsent = Buffer.concat([connection.unsent, bytes])
    if (connection.unsent.length > unsentBytesMax) socket.terminate()
    return
  }
  const written = Math.max(0, socket.write(bytes))
  if (written < bytes.length) connection.unsent = Buffer.from(bytes.subarray(written))
}

function drain(socket: Socket<Connection>): void {
  const { unsent } = socket.data
  socket.data.unsent = Buffer.alloc(0)
  if (unsent.length > 0) send(socket, unsent)
}

function modelList(): string {
  const model = { id: modelName, object: 'model', created: 1_700_000_000, owned_by: 'bench' }
  return JSON.stringify({ object: 'list', data: [model] })
}

function stats(): string {
  return JSON.stringify({ requestsTotal, streamsOpen, latenessMs: lateness.quantiles() })
}

function listen(): number {
  const server = Bun.listen<Connection>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { reader: new RequestReader(), unsent: Buffer.alloc(0), streams: new Set() }
      },
      data(socket, bytes) {
        for (const request of socket.data.reader.push(bytes)) answer(socket, request)
      },
      drain,
      close(socket) {
        for (const stream of socket.data.streams) forget(stream)
      },
      error(socket) {
        socket.terminate()
      },
    },
  })
  return server.port
}

console.log(JSON.stringify({ port: listen() }))
process.stdin.on('end', () => process.exit(0)).resume()
setTimeout(() => process.exit(0), Number(process.argv[2] ?? defaultLifetimeS) * 1000)
