import { expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { passTime } from '#test/support/passing-time.ts'
import { openSpeech } from '#test/support/speech-client.ts'
import type { SpeechServer, SpeechServerOptions } from '#test/support/speech-server.ts'
import { createTalkativeEngine } from '#test/support/talkative-engine.ts'
import { serveSpeech } from './served-speech.ts'

/** Clients that do not read their frames. */

const finalChars = 20_000
const utteranceBytes = 19_200

const speechServers = serveSpeech()

function start(speech: NonNullable<SpeechServerOptions['speech']>): SpeechServer {
  const engines = [createTalkativeEngine(finalChars)]
  return speechServers.start({ engines, speech })
}

type Gauges = ReturnType<SpeechServer['sessions']['metrics']>

/** Sends speech without reading until the kernel's buffers are full and enough frames wait. */
async function stall(server: SpeechServer, isEnough: (metrics: Gauges) => boolean) {
  const client = await openSpeech(server.port, { token: speechServers.token })
  await client.start({ options: { max_partial_hz: 50 } })
  client.socket.pause()
  let utterances = 0
  await eventually('enough frames wait', () => {
    // Its audio must not accumulate either.
    if (client.socket.writableLength > 1_000_000) return isEnough(server.sessions.metrics())
    for (let count = 0; count < 10; count++) client.sendAudio(new Uint8Array(utteranceBytes))
    utterances += 10
    return isEnough(server.sessions.metrics())
  })
  return { client, utterances }
}

const isHeldBack = ({ queuedBytes, unreadBytes }: Gauges) => queuedBytes > 0 && unreadBytes > 65_536

test('a client that pauses reading loses no finals, only superseded partials', async () => {
  const server = start({ readerBytesMax: 65_536 })
  const { client, utterances } = await stall(server, isHeldBack)
  client.socket.resume()
  const { stats } = await client.end()
  const numbers = client.finals().map((text) => Number.parseInt(text, 10))
  expect(numbers).toEqual(Array.from({ length: utterances }, (_, at) => at + 1))
  expect(client.finals().every((text) => text.length === finalChars)).toBe(true)
  expect(client.frames().map(({ seq }) => seq)).toEqual(client.frames().map((_, at) => at + 1))
  const partials = client.of('transcript').filter(({ is_final }) => !is_final)
  expect(stats.partials_sent).toBe(partials.length)
  expect(stats.finals).toBe(utterances)
  expect(stats.received_bytes).toBe(utterances * utteranceBytes)
  expect(stats.pauses).toBeGreaterThan(0)
})

test('of unread partials only the newest waits', async () => {
  const server = start({ readerBytesMax: 16_000_000 })
  const { client, utterances } = await stall(server, ({ unreadBytes }) => unreadBytes > 200_000)
  const isProcessed = () => server.sessions.metrics().queuedBytes === 0
  await eventually(
    'all audio was processed',
    () => client.socket.writableLength === 0 && isProcessed(),
  )
  const stalledFrom = utterances + 1
  for (let piece = 0; piece < 9; piece++) {
    client.sendAudio(new Uint8Array(utteranceBytes / 3))
    // As many partials as may be sent in a second.
    await Bun.sleep(30)
  }
  client.socket.resume()
  const { stats } = await client.end()
  expect(stats.partials_dropped).toBeGreaterThan(0)
  const transcripts = client
    .of('transcript')
    .filter(({ text }) => Number.parseInt(text, 10) >= stalledFrom)
  expect(transcripts.map(({ is_final }) => is_final)).toEqual([true, true, true])
})

test('unread frames are limited; further audio waits undecoded', async () => {
  const server = start({ readerBytesMax: 65_536 })
  const { client } = await stall(server, isHeldBack)
  // The audio that the engine already has, one more piece, and their partials.
  const inFlight = Math.ceil(server.settings.inFlightMsMax / 600) + 1
  expect(server.sessions.metrics().unreadBytes).toBeLessThan(65_536 + 2 * inFlight * finalChars)
  client.socket.destroy()
})

test('a client that does not resume reading is disconnected and its engine released', async () => {
  const server = start({ readerBytesMax: 65_536 })
  const { client } = await stall(server, isHeldBack)
  passTime(server.settings.readerStallMs)
  await eventually('its session has ended', () => server.sessions.metrics().sessions === 0)
  await eventually('its socket is closed', () => server.sessions.metrics().connections === 0)
  expect(server.logLines.join()).toContain('"session_end":"slow_consumer"')
  client.socket.resume()
  await eventually('the client sees the close', client.isClosed)
  const numbers = client.finals().map((text) => Number.parseInt(text, 10))
  expect(numbers).toEqual(numbers.map((_, at) => at + 1))
})
