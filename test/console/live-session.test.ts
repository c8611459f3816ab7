import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { pcmBytes } from '#test/support/speech-client.ts'
import { type SpeechServer, startSpeechServer } from '#test/support/speech-server.ts'
import { speak } from '#test/support/spoken-numbers.ts'
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts'

/** The recording of the page Live speech, without the page: what happens when its gateway is away. */

type Session = { send(bytes: Uint8Array): void; end(): void; abort(): void }
type Progress = { capturedMs: number; receivedMs: number; finalMs: number; lostMs: number }

// Its types need the generated client, which the type check of the tests does not have.
const source = join(import.meta.dir, '../../console/src/pages/speech/live-session.ts')
const { openLiveSession } = (await import(source)) as {
  openLiveSession(options: object): Session
}

let gateway: Gateway
let token: string
let server: SpeechServer
let proxy: TcpProxy
let engine: ReturnType<typeof createScriptedEngine>

beforeAll(async () => {
  gateway = await startGateway()
  token = await gateway.token()
})
afterEach(async () => {
  await proxy.stop()
  await server.stop()
})
afterAll(() => gateway.stop())

const speech = speak(
  Array.from({ length: 8 }, () => ({ silenceMs: 400, words: 5 })),
  600,
)
const bytes = pcmBytes(speech.samples)
const numbers = speech.words.map(({ word }) => word)
const pieceBytes = 1_600

async function start(options: { speech?: { resumeMs?: number }; bufferMs?: number } = {}) {
  engine = createScriptedEngine()
  server = startSpeechServer(gateway, { engines: [engine], ...options })
  proxy = await startTcpProxy({ host: '127.0.0.1', port: server.port })
  const query = `encoding=pcm_int16&sample_rate_hz=16000&token=${token}`
  const words: string[] = []
  const stats: { resumes: number }[] = []
  let progress: Progress | undefined
  let ended: unknown
  let away = 0
  const session = openLiveSession({
    url: () => `ws://127.0.0.1:${proxy.port}/v1/stt?${query}`,
    sampleRateHz: 16_000,
    ...(options.bufferMs === undefined ? {} : { bufferMs: options.bufferMs }),
    listener: {
      ready() {},
      restarted() {},
      warning() {},
      reconnecting() {
        away += 1
      },
      transcript(frame: { is_final: boolean; text: string; end: number }) {
        if (frame.is_final) words.push(...frame.text.split(' '))
      },
      progress(latest: Progress) {
        progress = latest
      },
      stats: (latest: { resumes: number }) => stats.push(latest),
      ended(failure: unknown) {
        ended = failure ?? 'complete'
      },
    },
  })
  return {
    ...{ session, words, stats },
    progress: () => progress,
    send(from: number, to: number) {
      for (let at = Math.floor(from * bytes.length); at < to * bytes.length; at += pieceBytes) {
        session.send(bytes.slice(at, Math.min(at + pieceBytes, to * bytes.length)))
      }
    },
    async isAway() {
      await proxy.goDown()
      await eventually('the page notices', () => away > 0)
    },
    async hasEnded() {
      session.end()
      await eventually('the recording ends', () => ended !== undefined)
      expect(ended).toBe('complete')
    },
  }
}

test('a broken connection is resumed: no word is lost or repeated', async () => {
  const page = await start()
  page.send(0, 0.5)
  await eventually('some words are final', () => page.words.length >= 10)
  // Sent, and lost on the way.
  proxy.freeze()
  page.send(0.5, 0.6)
  await page.isAway()
  page.send(0.6, 0.75)
  proxy.thaw()
  await proxy.comeUp()
  page.send(0.75, 1)
  await page.hasEnded()
  expect(page.words).toEqual(numbers)
  expect(engine.opened()).toBe(1)
  expect(page.stats.map(({ resumes }) => resumes)).toEqual([1])
  expect(page.progress()).toMatchObject({ lostMs: 0 })
})

test('a session that cannot be resumed is replaced: audio without a final is sent again', async () => {
  const page = await start({ speech: { resumeMs: 0 } })
  page.send(0, 0.5)
  await eventually('some words are final', () => page.words.length >= 10)
  await page.isAway()
  page.send(0.5, 1)
  await proxy.comeUp()
  await page.hasEnded()
  expect(page.words).toEqual(numbers)
  expect(engine.opened()).toBe(2)
})

test('a recording that outlasts its buffer says how much it lost', async () => {
  const page = await start({ bufferMs: 2_000 })
  page.send(0, 0.25)
  await eventually('some words are final', () => page.words.length >= 5)
  await page.isAway()
  page.send(0.25, 0.9)
  await proxy.comeUp()
  await eventually('the rest is sent', () => engine.opened() === 2)
  page.send(0.9, 1)
  await page.hasEnded()
  expect(page.progress()?.lostMs).toBeGreaterThan(1_000)
  expect(page.words.at(-1)).toBe(numbers.at(-1) as string)
  expect(page.words).toEqual(numbers.filter((number) => page.words.includes(number)))
})
