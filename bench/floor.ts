/**
 * The smallest honest gateway in this runtime: what a request costs before any feature. It authenticates,
 * limits, checks the body, calls the upstream over pooled sockets with deadlines, translates Responses to
 * chat completions and back, streamed and whole, and keeps a log line and a histogram for each request.
 *     bun bench/floor.ts UPSTREAM_PORT SECRET
 * Prints `{"port":…}` when it listens; exits when standard input closes. It trusts the mock upstream.
 */
import type { Socket } from 'bun'
import { jwtVerify } from 'jose'
import { isRecord } from '#lib/json.ts'
import { ResponseReader } from './support/response-reader.ts'

const [upstreamPort = '', secret = ''] = process.argv.slice(2)
const max = { requestsPerSecond: 1_000_000, inFlight: 20_000, bodyBytes: 1_048_576, callers: 1_000 }
const totalMs = 600_000
const pool = { idleMax: 1_024, idleMs: 60_000 }

type Caller = { readonly subject: string; readonly untilMs: number; tokens: number; atMs: number }

const key = new TextEncoder().encode(secret)
const callers = new Map<string, Caller>()
const durationCounts = new Float64Array(24)
const lines: string[] = []
let inFlight = 0

async function authenticate(header: string): Promise<Caller> {
  const known = callers.get(header)
  if (known !== undefined && known.untilMs > Date.now()) return known
  const { payload } = await jwtVerify(header.slice('Bearer '.length), key)
  if (callers.size >= max.callers) callers.clear()
  const { sub: subject = '', exp = 0 } = payload
  const caller = { subject, untilMs: exp * 1_000, tokens: 0, atMs: 0 }
  callers.set(header, caller)
  return caller
}

function takeToken(caller: Caller, nowMs: number): boolean {
  const refill = ((nowMs - caller.atMs) * max.requestsPerSecond) / 1_000
  caller.tokens = Math.min(max.requestsPerSecond, caller.tokens + refill) - 1
  caller.atMs = nowMs
  return caller.tokens >= 0
}

function settle(caller: Caller, startedMs: number): void {
  inFlight--
  const ms = performance.now() - startedMs
  const bucket = Math.min(23, Math.max(0, Math.ceil(Math.log2(ms)) + 4))
  durationCounts[bucket] = (durationCounts[bucket] ?? 0) + 1
  if (lines.length === 0) setImmediate(() => process.stderr.write(lines.splice(0).join('')))
  lines.push(`{"message":"request ended","user":"${caller.subject}","ms":${ms}}\n`)
}

type Call = { onText(text: string): void; onEnd(): void }
type Connection = { call: Call | null; deadlineMs: number; reader: ResponseReader }

const idle: Socket<Connection>[] = []
const busy = new Set<Socket<Connection>>()

async function connect(): Promise<Socket<Connection>> {
  const reader = new ResponseReader({
    onHead: () => {},
    onBody: (text) => socket.data.call?.onText(text),
    onEnd() {
      busy.delete(socket)
      socket.data.deadlineMs = performance.now() + pool.idleMs
      if (idle.push(socket) > pool.idleMax) idle.shift()?.end()
      socket.data.call?.onEnd()
    },
  })
  const socket: Socket<Connection> = await Bun.connect<Connection>({
    hostname: '127.0.0.1',
    port: Number(upstreamPort),
    data: { call: null, deadlineMs: 0, reader },
    socket: {
      data: ({ data }, bytes) => data.reader.push(bytes),
      close({ data }) {
        if (busy.delete(socket)) data.call?.onEnd()
      },
    },
  })
  return socket
}

async function send(body: string, call: Call): Promise<Socket<Connection>> {
  const socket = idle.pop() ?? (await connect())
  Object.assign(socket.data, { call, deadlineMs: performance.now() + totalMs })
  busy.add(socket)
  const head = 'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json'
  socket.write(`${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  return socket
}

/** One sweep holds every deadline. */
setInterval(() => {
  for (const socket of busy) if (socket.data.deadlineMs < performance.now()) socket.terminate()
  while ((idle[0]?.data.deadlineMs ?? Infinity) < performance.now()) idle.shift()?.end()
}, 250)

const refuse = (status: number, error: string) => Response.json({ error }, { status })

async function handle(request: Request): Promise<Response> {
  const startedMs = performance.now()
  const caller = await authenticate(request.headers.get('authorization') ?? '').catch(() => null)
  if (caller === null) return refuse(401, 'no valid token')
  if (!takeToken(caller, startedMs)) return refuse(429, 'too many requests')
  if (inFlight >= max.inFlight) return refuse(503, 'too many requests at once')
  if (Number(request.headers.get('content-length')) > max.bodyBytes) return refuse(413, 'too long')
  const body: unknown = await request.json().catch(() => null)
  const { model, input, stream = false } = isRecord(body) ? body : {}
  if (typeof model !== 'string' || typeof input !== 'string') return refuse(400, 'incomplete')
  const options = stream ? { stream_options: { include_usage: true } } : {}
  const messages = [{ role: 'user', content: input }]
  const sent = JSON.stringify({ model, messages, stream, ...options })
  inFlight++
  return (stream ? streamResponse : wholeResponse)(sent, model, () => settle(caller, startedMs))
}

const newId = (prefix: string) => `${prefix}_${crypto.randomUUID()}`
const textPart = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })
const message = (id: string, status: string, content: object[]) => {
  return { id, type: 'message', status, role: 'assistant', content }
}
const responseObject = (id: string, model: string, output: object[], usage: unknown = null) => {
  const status = usage === null ? 'in_progress' : 'completed'
  return { id, object: 'response', created_at: 0, status, model, output, usage, error: null }
}

function wholeResponse(body: string, model: string, done: () => void): Promise<Response> {
  return new Promise((resolve) => {
    const received: string[] = []
    const onEnd = () => {
      const { choices, usage } = JSON.parse(received.join(''))
      const content = [textPart(choices[0].message.content)]
      const output = [message(newId('msg'), 'completed', content)]
      resolve(Response.json(responseObject(newId('resp'), model, output, usage)))
      done()
    }
    void send(body, { onText: (text) => received.push(text), onEnd })
  })
}

function streamResponse(body: string, model: string, done: () => void): Response {
  const [id, itemId] = [newId('resp'), newId('msg')]
  const place = { item_id: itemId, output_index: 0, content_index: 0 }
  let [sequence, unread, text, usage]: [number, string, string, unknown] = [0, '', '', null]
  let sent: Promise<Socket<Connection>> | null = null
  const frame = (type: string, fields: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...fields })}\n\n`
  const start = (stream: ReadableStreamDefaultController<string>) => {
    const response = responseObject(id, model, [])
    stream.enqueue(
      frame('response.created', { response }) +
        frame('response.in_progress', { response }) +
        frame('response.output_item.added', {
          output_index: 0,
          item: message(itemId, 'in_progress', []),
        }) +
        frame('response.content_part.added', { ...place, part: textPart('') }),
    )
    const onText = (piece: string) => {
      unread += piece
      let frames = ''
      for (let end = unread.indexOf('\n\n'); end !== -1; end = unread.indexOf('\n\n')) {
        const data = unread.slice('data: '.length, end)
        unread = unread.slice(end + 2)
        const chunk = data === '[DONE]' ? { choices: [] } : JSON.parse(data)
        usage = chunk.usage ?? usage
        const delta: string = chunk.choices[0]?.delta.content ?? ''
        text += delta
        if (delta !== '') frames += frame('response.output_text.delta', { ...place, delta })
      }
      if (frames !== '') stream.enqueue(frames)
    }
    const onEnd = () => {
      const item = message(itemId, 'completed', [textPart(text)])
      const response = responseObject(id, model, [item], usage)
      stream.enqueue(
        frame('response.output_text.done', { ...place, text }) +
          frame('response.content_part.done', { ...place, part: textPart(text) }) +
          frame('response.output_item.done', { output_index: 0, item }) +
          `${frame('response.completed', { response })}data: [DONE]\n\n`,
      )
      stream.close()
      done()
    }
    sent = send(body, { onText, onEnd })
  }
  const cancel = async () => {
    const socket = await sent
    if (socket !== null) socket.data.call = null
    socket?.terminate()
    done()
  }
  const headers = { 'content-type': 'text/event-stream' }
  return new Response(new ReadableStream({ start, cancel }), { headers })
}

const server = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 0, fetch: handle })
console.log(JSON.stringify({ port: server.port }))
process.stdin.on('end', () => process.exit(0)).resume()
