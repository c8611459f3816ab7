/**
 * A cheap inference server: a process of its own, plain TCP, pre-encoded frames shared by all
 * streams, one timer. It speaks chat completions, Responses and Messages and follows the plan in
 * the prompt.
 *
 *     bun bench/mock-upstream.ts [lifetime in seconds] [port]
 *
 * Prints `{"port":…}` when it listens; exits when standard input closes or its lifetime is over.
 * `GET /stats` returns the lateness of its timer.
 */
import type { Socket } from 'bun'
import { chunk, framesOf, lastChunk, tokenChunksOf } from './support/encoded-chunks.ts'
import { Histogram } from './support/histogram.ts'
import type { MockFrames, Protocol } from './support/mock-frames.ts'
import {
  createSchedule,
  modelName,
  type Plan,
  readPlan,
  tokenText,
  wallClockMs,
} from './support/plan.ts'
import { type HttpRequest, RequestReader } from './support/request-reader.ts'
import { send, sendUnsent, type Unsent } from './support/send-buffer.ts'
import { TimerWheel } from './support/timer-wheel.ts'

/** Size of a write; limits what is buffered for a stalled reader. */
const writeBytesMax = 64 * 1024
const defaultLifetimeS = 7200

type Connection = Unsent & { reader: RequestReader; streams: Set<PacedStream> }

type PacedStream = {
  readonly socket: Socket<Connection>
  readonly plan: Plan
  readonly frames: MockFrames
  readonly tokenChunk: (index: number) => Buffer
  readonly wantsUsage: boolean
  readonly startedMs: number
  readonly firstToken: string
  readonly nextDueMs: () => number
  /** Index of the next token; `plan.tokens` when only the end is left. */
  index: number
  dueMs: number
  /** The socket is full; sending resumes on drain. */
  waits: boolean
  closed: boolean
}

const generatingRoutes: ReadonlyMap<string, Protocol> = new Map([
  ['POST /v1/chat/completions', 'chat'],
  ['POST /v1/responses', 'responses'],
  ['POST /v1/messages', 'messages'],
])
const lateness = new Histogram()
const wheel = new TimerWheel<PacedStream>(sendDue)
let streamsOpen = 0
let requestsTotal = 0

function respond(socket: Socket<Connection>, request: HttpRequest): void {
  requestsTotal++
  const route = `${request.method} ${request.path}`
  const protocol = generatingRoutes.get(route)
  if (protocol !== undefined) generate(socket, protocol, request.body)
  else if (route === 'GET /v1/models') sendJson(socket, 200, modelList())
  else if (route === 'GET /stats') sendJson(socket, 200, stats())
  else sendJson(socket, 404, JSON.stringify({ error: { message: `no route ${route}` } }))
}

/**
 * Large bodies are searched instead of parsed, so that the upstream's CPU does not distort the
 * measurement. Quotation marks in text are escaped, so no prompt can contain this sequence.
 */
function generate(socket: Socket<Connection>, protocol: Protocol, body: string): void {
  const plan = readPlan(body)
  if (plan === undefined) {
    sendJson(socket, 400, JSON.stringify({ error: { message: 'the prompt has no plan' } }))
  } else if (/"stream"\s*:\s*true/.test(body)) {
    const wantsUsage = /"include_usage"\s*:\s*true/.test(body)
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
    waits: false,
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

/**
 * Sends due tokens in as few writes as possible, then waits for the next token or for the reader,
 * or ends the stream.
 */
function sendTokens(stream: PacedStream, nowMs: number, parts: Buffer[]): void {
  const { plan } = stream
  let bytes = 0
  while (stream.index < plan.tokens && stream.dueMs <= nowMs && bytes < writeBytesMax) {
    const isFirst = stream.index === 0
    const part = isFirst
      ? chunk(stream.frames.token(stream.firstToken, 0))
      : stream.tokenChunk(stream.index)
    parts.push(part)
    bytes += part.length
    stream.index++
    const atEnd = stream.index === plan.tokens
    stream.dueMs = stream.startedMs + (atEnd ? endMs(stream) : stream.nextDueMs())
  }
  const ends = stream.index === plan.tokens && stream.dueMs <= nowMs
  if (ends) {
    const text = stream.firstToken + laterTokens(plan)
    parts.push(chunk(stream.frames.closing(plan, text, stream.wantsUsage)), lastChunk)
    removeStream(stream)
  }
  const [only] = parts
  send(stream.socket, parts.length === 1 && only !== undefined ? only : Buffer.concat(parts))
  if (ends) return
  if (stream.socket.data.unsent.length > 0) stream.waits = true
  else wheel.add(stream)
}

function endMs(stream: PacedStream): number {
  return Math.max(stream.dueMs - stream.startedMs, stream.plan.lastsMs)
}

function removeStream(stream: PacedStream): void {
  if (stream.closed) return
  stream.closed = true
  streamsOpen--
  stream.socket.data.streams.delete(stream)
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

function drain(socket: Socket<Connection>): void {
  sendUnsent(socket)
  if (socket.data.unsent.length > 0) return
  for (const stream of socket.data.streams) {
    if (!stream.waits) continue
    stream.waits = false
    wheel.add(stream)
  }
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
    port: Number(process.argv[3] ?? 0),
    socket: {
      open(socket) {
        socket.data = { reader: new RequestReader(), unsent: Buffer.alloc(0), streams: new Set() }
      },
      data(socket, bytes) {
        for (const request of socket.data.reader.push(bytes)) respond(socket, request)
      },
      drain,
      close(socket) {
        for (const stream of socket.data.streams) removeStream(stream)
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
