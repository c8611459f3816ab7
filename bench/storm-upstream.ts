/**
 * Upstream of `abort-storm`: it is silent for a while or for ever, then responds as the prompt
 * says, and records when each request ended, by itself or because the connection closed.
 *
 *     bun bench/storm-upstream.ts [lifetime in seconds]
 *
 * Prints `{"port":…}` when it listens; exits when standard input closes or its lifetime is over.
 * `GET /stats` returns open requests; `GET /ends` returns and clears the ended ones.
 */
import type { Socket } from 'bun'
import { chunk, lastChunk } from './support/encoded-chunks.ts'
import { chatFrames } from './support/mock-frames.ts'
import { barePlan, modelName, wallClockMs } from './support/plan.ts'
import { type HttpRequest, RequestReader } from './support/request-reader.ts'
import { send, sendUnsent, type Unsent } from './support/send-buffer.ts'
import { readStormRequest, type StormRequest, stormText, stormToken } from './support/storm-job.ts'
import { TimerWheel } from './support/timer-wheel.ts'

const defaultLifetimeS = 900

type Connection = Unsent & { readonly reader: RequestReader; readonly requests: Set<OpenRequest> }

type OpenRequest = {
  readonly socket: Socket<Connection>
  readonly spec: StormRequest
  readonly isStreamed: boolean
  readonly startedMs: number
  /** Index of the next token. */
  index: number
  dueMs: number
  isOver: boolean
}

const wheel = new TimerWheel<OpenRequest>(continueRequest)
const ends: [id: number, atMs: number][] = []
let requestsOpen = 0
let connectionsOpen = 0

function respond(socket: Socket<Connection>, { method, path, body }: HttpRequest): void {
  const route = `${method} ${path}`
  const spec = route === 'POST /v1/chat/completions' ? readStormRequest(body) : undefined
  if (spec !== undefined) begin(socket, spec, /"stream"\s*:\s*true/.test(body))
  else if (route === 'GET /v1/models') sendJson(socket, { object: 'list', data: [model] })
  else if (route === 'GET /stats') sendJson(socket, { requestsOpen, connectionsOpen })
  else if (route === 'GET /ends') sendJson(socket, ends.splice(0))
  else socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
}

const model = { id: modelName, object: 'model', created: 1_700_000_000, owned_by: 'bench' }

function begin(socket: Socket<Connection>, spec: StormRequest, isStreamed: boolean): void {
  const startedMs = performance.now()
  const dueMs = startedMs + spec.waitMs
  const request = { socket, spec, isStreamed, startedMs, index: 0, dueMs, isOver: false }
  requestsOpen++
  socket.data.requests.add(request)
  wheel.add(request)
}

/** Sends due tokens; a response that is not streamed is sent with its last token. */
function continueRequest(request: OpenRequest): void {
  const { socket, spec, isStreamed } = request
  if (request.isOver) return
  if (request.index === 0 && isStreamed) {
    socket.write(streamHead)
    socket.write(chunk(chatFrames.opening()))
  }
  if (isStreamed) {
    socket.write(chunk(chatFrames.token(stormToken(spec.id, request.index), request.index)))
  }
  request.index++
  if (request.index < spec.tokens) {
    request.dueMs = request.startedMs + spec.waitMs + request.index * spec.gapMs
    wheel.add(request)
    return
  }
  // Frames only depend on the number of tokens.
  const plan = { ...barePlan, tokens: spec.tokens }
  const text = stormText(spec)
  finish(request)
  if (!isStreamed) socket.write(jsonResponse(chatFrames.body(plan, text)))
  else socket.write(Buffer.concat([chunk(chatFrames.closing(plan, text, true)), lastChunk]))
}

const streamHead =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'

function finish(request: OpenRequest): void {
  if (request.isOver) return
  request.isOver = true
  requestsOpen--
  request.socket.data.requests.delete(request)
  ends.push([request.spec.id, wallClockMs()])
}

/** The list needs several writes; its connection is used once. */
function sendJson(socket: Socket<Connection>, value: unknown): void {
  send(socket, Buffer.from(jsonResponse(JSON.stringify(value))))
}

function jsonResponse(body: string): string {
  return (
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n' +
    `Content-Length: ${body.length}\r\n\r\n${body}`
  )
}

const server = Bun.listen<Connection>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      connectionsOpen++
      socket.data = { reader: new RequestReader(), unsent: Buffer.alloc(0), requests: new Set() }
    },
    data(socket, bytes) {
      for (const request of socket.data.reader.push(bytes)) respond(socket, request)
    },
    drain: sendUnsent,
    close(socket) {
      connectionsOpen--
      for (const request of socket.data.requests) finish(request)
    },
    error(socket) {
      socket.terminate()
    },
  },
})
console.log(JSON.stringify({ port: server.port }))
process.stdin.on('end', () => process.exit(0)).resume()
setTimeout(() => process.exit(0), Number(process.argv[2] ?? defaultLifetimeS) * 1000)
