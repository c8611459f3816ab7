import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { openSpeech, pcmBytes } from '#test/support/speech-client.ts'
import { type SpeechServer, startSpeechServer } from '#test/support/speech-server.ts'
import { speak } from '#test/support/spoken-numbers.ts'

/** Sessions whose engine is not ready yet. */

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

/** A server whose engine becomes ready when the test says so. */
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

test('audio sent before the engine is ready waits and is transcribed in full', async () => {
  start()
  const client = await openSpeech(server.port, { token })
  client.send({})
  client.sendAudio(pcmBytes(speech.samples))
  const silence = new Uint8Array(frameBytes)
  for (let sent = 0; sent < 4_000_000; sent += frameBytes) client.sendAudio(silence)
  await eventually('some audio was read', () => server.sessions.metrics().queuedBytes > 0)
  expect(client.frames()).toEqual([])
  expect(inner.opened()).toBe(0)
  opened.resolve()
  const { stats } = await client.end()
  expect(server.sessions.metrics().queuedBytesPeak).toBeLessThanOrEqual(
    server.settings.queueBytesMax + readBytesMax + frameBytes,
  )
  expect(client.finals()).toEqual([speech.words.map(({ word }) => word).join(' ')])
  expect(stats.received_bytes).toBe(speech.samples.length * 2 + 4_000_000)
})

test('a client that disconnects meanwhile leaves nothing behind', async () => {
  start()
  const client = await openSpeech(server.port, { token })
  client.send({})
  await eventually(
    'the session waits for its engine',
    () => server.sessions.metrics().sessions === 1,
  )
  client.socket.destroy()
  await eventually('the disconnect is detected', () => server.sessions.metrics().sessions === 0)
  opened.resolve()
  await eventually('no engine session is left', () => inner.running() === 0)
  expect(server.sessions.metrics().waiting).toBe(0)
})

test('a draining process does not wait for the engine', async () => {
  start()
  const client = await openSpeech(server.port, { token })
  client.send({})
  await eventually(
    'the session waits for its engine',
    () => server.sessions.metrics().sessions === 1,
  )
  server.drain()
  expect(await client.refusal()).toMatchObject({ code: 'draining', closeCode: 1001 })
  opened.resolve()
})
