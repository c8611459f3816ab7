/**
 * An inference server with injected faults: a process of its own, plain TCP. It speaks chat
 * completions, Responses and Messages, always streamed, and cuts, stalls, refuses or sends
 * malformed data where the plan in the prompt says so.
 *
 *     bun bench/faulty-upstream.ts
 *
 * Prints `{"port":…}` when it listens, and exits when its standard input closes.
 */
import type { Socket } from 'bun'
import { chunk, framesOf, lastChunk } from './support/encoded-chunks.ts'
import type { Protocol } from './support/mock-frames.ts'
import { modelName, tokenText, wallClockMs } from './support/plan.ts'
import { type HttpRequest, RequestReader } from './support/request-reader.ts'
import { send, sendUnsent, type Unsent } from './support/send-buffer.ts'
import { isIn, passingFaults, readSoakPlan, type SoakPlan, textOf } from './support/soak-plan.ts'

type Connection = Unsent & {
  reader: RequestReader
  timers: Set<ReturnType<typeof setTimeout>>
}
type Peer = Socket<Connection>

const tickMs = 20
/** Number of requests whose attempts are counted. */
const idsMax = 10_000

const generatingRoutes: ReadonlyMap<string, Protocol> = new Map([
  ['POST /v1/chat/completions', 'chat'],
  ['POST /v1/responses', 'responses'],
  ['POST /v1/messages', 'messages'],
])
const streamHead =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
const triesOf = new Map<number, number>()

function respond(socket: Peer, { method, path, body }: HttpRequest): void {
  const protocol = generatingRoutes.get(`${method} ${path}`)
  const plan = readSoakPlan(body)
  if (path === '/v1/models') sendJson(socket, 200, { data: [{ id: modelName }] })
  else if (protocol === undefined || plan === undefined) {
    sendJson(socket, 404, { error: { message: `no plan for ${method} ${path}` } })
  } else if (isIn(passingFaults, plan.fault) && countTry(plan) <= plan.tries) refuse(socket, plan)
  else begin(socket, { plan, protocol, body })
}

function countTry({ id }: SoakPlan): number {
  const tries = (triesOf.get(id) ?? 0) + 1
  triesOf.delete(id)
  triesOf.set(id, tries)
  const [oldest] = triesOf.keys()
  if (triesOf.size > idsMax && oldest !== undefined) triesOf.delete(oldest)
  return tries
}

function refuse(socket: Peer, { fault }: SoakPlan): void {
  const status = Number(/^status-(\d+)$/.exec(fault)?.[1])
  if (Number.isNaN(status)) socket.terminate()
  else sendJson(socket, status, { error: { message: 'as it was planned', type: 'planned' } })
}

type Work = { readonly plan: SoakPlan; readonly protocol: Protocol; readonly body: string }

function begin(socket: Peer, work: Work): void {
  const { fault } = work.plan
  if (fault === 'status-400') refuse(socket, work.plan)
  else if (fault === 'no-stream') {
    const page = '<html>Not an API response</html>'
    const head = `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${page.length}`
    send(socket, Buffer.from(`${head}\r\n\r\n${page}`))
  } else if (fault === 'silence') send(socket, Buffer.from(streamHead))
  else stream(socket, work)
}

/** Sends due tokens at each tick, up to the end or the fault. */
function stream(socket: Peer, { plan: planned, protocol, body }: Work): void {
  const { plan } = planned
  const frames = framesOf[protocol]
  const startedMs = performance.now()
  const startedAtMs = wallClockMs()
  const isBreaking = !isIn(passingFaults, planned.fault) && planned.fault !== 'none'
  const stopsAt = isBreaking ? planned.at : plan.tokens
  let index = 0
  send(socket, Buffer.concat([Buffer.from(streamHead), chunk(frames.opening())]))
  const tick = () => {
    const passedS = (performance.now() - startedMs) / 1_000
    const due = plan.tokensPerSecond === 0 ? stopsAt : 1 + passedS * plan.tokensPerSecond
    const parts: Buffer[] = []
    for (; index < Math.min(due, stopsAt); index++) {
      parts.push(chunk(frames.token(tokenText(plan, index, startedAtMs), index)))
    }
    if (parts.length > 0) send(socket, Buffer.concat(parts))
    if (index < stopsAt) later(socket, tick)
    else if (isBreaking) injectFault(socket, planned, protocol)
    else {
      const wantsUsage = /"include_usage"\s*:\s*true/.test(body)
      const end = frames.closing(plan, textOf(plan, startedAtMs), wantsUsage)
      send(socket, Buffer.concat([chunk(end), lastChunk]))
    }
  }
  tick()
}

function later(socket: Peer, work: () => void): void {
  const { timers } = socket.data
  const timer = setTimeout(() => {
    timers.delete(timer)
    work()
  }, tickMs)
  timers.add(timer)
}

function injectFault(socket: Peer, { fault }: SoakPlan, protocol: Protocol): void {
  switch (fault) {
    case 'cut':
      // Flushes first, so that the fault occurs where the plan says.
      later(socket, () => socket.terminate())
      return
    case 'early-end':
      send(socket, lastChunk)
      return
    case 'nonsense':
      send(socket, Buffer.concat([chunk('data: {"half": tru\n\n'), lastChunk]))
      return
    case 'error-event':
      send(socket, Buffer.concat([chunk(errorFrame(protocol)), lastChunk]))
      return
    default:
      // A stall: no more data and no end.
      return
  }
}

function errorFrame(protocol: Protocol): string {
  const error = { type: 'overloaded_error', code: 'overloaded', message: 'as it was planned' }
  if (protocol === 'chat') return `data: ${JSON.stringify({ error })}\n\n`
  const own = protocol === 'messages' ? { error } : { ...error, sequence_number: 99, param: null }
  return `event: error\ndata: ${JSON.stringify({ ...own, type: 'error' })}\n\n`
}

function sendJson(socket: Peer, status: number, body: object): void {
  const text = JSON.stringify(body)
  const head = `HTTP/1.1 ${status} Planned\r\nContent-Type: application/json\r\n`
  send(socket, Buffer.from(`${head}Content-Length: ${text.length}\r\n\r\n${text}`))
}

const server = Bun.listen<Connection>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = {
        reader: new RequestReader(),
        unsent: Buffer.alloc(0),
        timers: new Set(),
      }
    },
    data(socket, bytes) {
      for (const request of socket.data.reader.push(bytes)) respond(socket, request)
    },
    drain: sendUnsent,
    close(socket) {
      for (const timer of socket.data.timers) clearTimeout(timer)
    },
    error(socket) {
      socket.terminate()
    },
  },
})
console.log(JSON.stringify({ port: server.port }))
process.stdin.on('end', () => process.exit(0)).resume()
