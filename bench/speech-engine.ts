/**
 * A cheap speech server: a process of its own that speaks the Vosk protocol and recognises spoken
 * numbers (`spoken-tones.ts`), so that lost audio is detected.
 *
 *     bun bench/speech-engine.ts [pace]
 *
 * `pace`: how many times faster than real time it reads audio; default: no limit. Prints
 * `{"port":…}` when it listens, and exits when its standard input closes.
 */
import type { ServerWebSocket } from 'bun'
import { sampleRateHz, ToneRecogniser, type ToneWord } from './support/spoken-tones.ts'

type Recogniser = {
  readonly tones: ToneRecogniser
  words: ToneWord[]
  /** Delayed replies. */
  readonly waiting: { readonly dueMs: number; readonly reply: string }[]
  dueMs: number
}

type Socket = ServerWebSocket<Recogniser>

const endpointMs = 300
const lookMs = 10
const eof = '{"eof" : 1}'
const reset = '{"reset" : 1}'

const pace = Number(process.argv[2] ?? Number.POSITIVE_INFINITY)
const sockets = new Set<Socket>()

function recognise(socket: Socket, bytes: Buffer): void {
  const recogniser = socket.data
  const { tones, words } = recogniser
  // A copy, since the message may be unaligned.
  const samples = new Int16Array(new Uint8Array(bytes).buffer)
  words.push(...tones.process(samples))
  const text = words.map(({ word }) => word).join(' ')
  const isFinal = words.length > 0 && tones.silenceMs() >= endpointMs
  reply(
    socket,
    isFinal ? finalResult(recogniser) : JSON.stringify({ partial: text }),
    samples.length,
  )
}

function finalResult(recogniser: Recogniser): string {
  const result = recogniser.words.map(({ word, startMs, endMs }) => ({
    word: String(word),
    start: startMs / 1000,
    end: endMs / 1000,
    conf: 1,
  }))
  recogniser.words = []
  return JSON.stringify({ result, text: result.map(({ word }) => word).join(' ') })
}

/** Sends replies in order, when that much audio would have been read. */
function reply(socket: Socket, text: string, samples: number): void {
  if (pace === Number.POSITIVE_INFINITY) {
    socket.send(text)
    return
  }
  const recogniser = socket.data
  const takesMs = (samples * 1000) / sampleRateHz / pace
  recogniser.dueMs = Math.max(recogniser.dueMs, performance.now()) + takesMs
  recogniser.waiting.push({ dueMs: recogniser.dueMs, reply: text })
}

function sendDue(): void {
  const nowMs = performance.now()
  for (const socket of sockets) {
    const { waiting } = socket.data
    while ((waiting[0]?.dueMs ?? Number.POSITIVE_INFINITY) <= nowMs) {
      socket.send(waiting.shift()?.reply ?? '')
    }
  }
}

const server = Bun.serve<Recogniser>({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request, own) {
    const data = { tones: new ToneRecogniser(), words: [], waiting: [], dueMs: 0 }
    if (own.upgrade(request, { data })) return undefined
    return new Response('a WebSocket is wanted', { status: 426 })
  },
  websocket: {
    open: (socket) => void sockets.add(socket),
    close: (socket) => void sockets.delete(socket),
    message(socket, message) {
      if (typeof message !== 'string') return recognise(socket, message)
      if (message !== eof && message !== reset) return
      reply(socket, finalResult(socket.data), 0)
    },
  },
})

if (pace !== Number.POSITIVE_INFINITY) setInterval(sendDue, lookMs)
console.log(JSON.stringify({ port: server.port }))
process.stdin.on('end', () => process.exit(0)).resume()
