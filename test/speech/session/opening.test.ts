import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { openSpeech, pcmBytes } from '#test/support/speech-client.ts'
import { type SpeechServer, startSpeechServer } from '#test/support/speech-server.ts'
import { speak } from '#test/support/spoken-numbers.ts'

/** What happens while an engine is not ready yet. */

let gateway: Gateway
let token: string
let server: SpeechServer
let opened: ReturnType<typeof Promise.withResolvers<void>>
let inner: ReturnType<typeof createScriptedEngine>

beforeAll(async () => {
  gateway = await startGateway()
  token = await gateway.token()
})
afterEach(() => server.stop())
afterAll(() => gateway.stop())

/** Its engine is ready when a test says so. */
function start(): void {
  opened = Promise.withResolvers<void>()
  inner = createScriptedEngine()
  const engine = {
    ...inner,
    async open(options: Parameters<typeof inner.open>[0]) {
      await opened.promise
      return inner.open(options)
    },
  }
  server = startSpeechServer(gateway, { engines: [engine] })
}

const speech = speak([{ silenceMs: 200, words: 9 }], 400)
const readBytesMax = 524_288
const frameBytes = 3_200

test('audio that comes too early waits where it is, and is recorder in full', async () => {
  start()
  const client = await openSpeech(server.port, { token })
  client.send({})
  client.sendAudio(pcmBytes(speech.samples))
  const silence = new Uint8Array(frameBytes)
  for (let sent = 0; sent < 4_000_000; sent += frameBytes) client.sendAudio(silence)
  await eventually('some of it has been read', () => server.sessions.metrics().queuedBytes > 0)
  expect(client.frames()).toEqual([])
  expect(inner.asked()).toBe(0)
  opened.resolve()
  const { stats } = await client.end()
  expect(server.sessions.metrics().queuedBytesPeak).toBeLessThanOrEqual(
    server.settings.queueBytesMax + readBytesMax + frameBytes,
  )
  expect(client.finals()).toEqual([speech.words.map(({ word }) => word).join(' ')])
  expect(stats.received_bytes).toBe(speech.samples.length * 2 + 4_000_000)
})

test('a client that goes away meanwhile leaves nothing behind', async () => {
  start()
  const client = await openSpeech(server.port, { token })
  client.send({})
  await eventually('it waits for its engine', () => server.sessions.metrics().sessions === 1)
  client.socket.destroy()
  await eventually('that is noticed', () => server.sessions.metrics().sessions === 0)
  opened.resolve()
  await eventually('no engine is left', () => inner.running() === 0)
  expect(server.sessions.metrics().waiting).toBe(0)
})

test('a process that stops does not wait for it', async () => {
  start()
  const client = await openSpeech(server.port, { token })
  client.send({})
  await eventually('it waits for its engine', () => server.sessions.metrics().sessions === 1)
  server.drain()
  expect(await client.refusal()).toMatchObject({ code: 'draining', closeCode: 1001 })
  opened.resolve()
})
