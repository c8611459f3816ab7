import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { endPassedTime, passTime } from '#test/support/passing-time.ts'
import { openSpeech, pcmBytes } from '#test/support/speech-client.ts'
import { type SpeechServer, startSpeechServer } from '#test/support/speech-server.ts'
import { speak } from '#test/support/spoken-numbers.ts'

/** Validation of the handshake and of later messages. */

/** Long enough for the deadlines to be checked at once afterwards. */
const frozenMs = 600

let gateway: Gateway
let server: SpeechServer
let token: string

beforeAll(async () => {
  gateway = await startGateway()
  server = startSpeechServer(gateway)
  token = await gateway.token()
})
afterAll(async () => {
  await server.stop()
  await gateway.stop()
})

const open = (query?: string) =>
  openSpeech(server.port, { token, ...(query === undefined ? {} : { query }) })

/** The error that a first message is refused with. */
async function refusalOf(first: string | Uint8Array, query?: string) {
  const client = await open(query)
  client.sendFrame(typeof first === 'string' ? 1 : 2, first)
  const refusal = await client.refusal()
  expect(client.of('session_ready')).toEqual([])
  return refusal
}

describe('the first message', () => {
  test.each(['{}', '{"type":"session_start"}', '{"type":null,"options":{"words":null}}'])(
    '%s begins a session with the defaults',
    async (message) => {
      const client = await open()
      client.sendFrame(1, message)
      expect(await client.waitFor('session_ready')).toMatchObject({
        audio: { container: 'auto', channels: 1 },
        flow: { mode: 'none' },
        limits: { max_frame_bytes: 262_144, idle_timeout_ms: 30_000, max_session_ms: 14_400_000 },
      })
      await client.end()
    },
  )

  test.each(['', 'hello', '[]', '"session_start"', 'null', '{"type":', '[['.repeat(20_000)])(
    'that is not a JSON object (%#) is refused',
    async (message) => {
      expect(await refusalOf(message)).toMatchObject({ code: 'invalid_handshake', closeCode: 1008 })
    },
  )

  test.each([
    ['{"type":"start"}', 'type'],
    ['{"protocol":2}', 'protocol'],
    ['{"audio":[]}', 'audio'],
    ['{"audio":{"channels":3}}', 'audio.channels'],
    ['{"audio":{"container":"mp4"}}', 'audio.container'],
    ['{"audio":{"container":"ogg"}}', 'audio.container'],
    ['{"options":7}', 'options'],
    ['{"options":{"partials":"yes"}}', 'options.partials'],
    ['{"options":{"words":1}}', 'options.words'],
    ['{"options":{"live":"no"}}', 'options.live'],
    ['{"options":{"max_partial_hz":0}}', 'options.max_partial_hz'],
    ['{"options":{"endpointing_ms":1.5}}', 'options.endpointing_ms'],
    ['{"options":{"endpointing_ms":50}}', 'options.endpointing_ms'],
    ['{"options":{"flow":"all"}}', 'options.flow'],
    ['{"options":{"vocabulary":["a",""]}}', 'options.vocabulary[1]'],
    [`{"options":{"vocabulary":${JSON.stringify(Array(257).fill('x'))}}}`, 'options.vocabulary'],
    ['{"metadata":[]}', 'metadata'],
    ['{"metadata":{"k":1}}', 'metadata.k'],
    [`{"metadata":{"k":"${'v'.repeat(257)}"}}`, 'metadata.k'],
    ['{"resume":{"session_id":"stt_1"}}', 'resume.token'],
    ['{"resume":{"session_id":1,"token":"t"}}', 'resume.session_id'],
    ['{"resume":{"session_id":"s","token":"t","last_seq":-1}}', 'resume.last_seq'],
  ])('%s is refused with the invalid field', async (message, param) => {
    const refusal = await refusalOf(message)
    expect(refusal).toMatchObject({ code: 'invalid_handshake', closeCode: 1008, param })
  })

  test('for Opus may declare a container but not "none"', async () => {
    const opus = 'encoding=opus'
    expect(await refusalOf('{"audio":{"container":"none"}}', opus)).toMatchObject({
      code: 'invalid_handshake',
      param: 'audio.container',
    })
    for (const container of ['auto', 'ogg', 'webm', 'raw']) {
      const client = await open(opus)
      const ready = await client.start({ audio: { container } })
      expect(ready.audio.container).toBe(container as 'ogg')
      await client.end()
    }
  })

  test.each([new Uint8Array(320), new Uint8Array(0)])('must not be audio (%#)', async (bytes) => {
    expect(await refusalOf(bytes)).toMatchObject({ code: 'handshake_required', closeCode: 1008 })
  })

  test.each(['keepalive', 'finalize', 'session_end'])('must not be a %s', async (type) => {
    expect(await refusalOf(JSON.stringify({ type }))).toMatchObject({ code: 'handshake_required' })
  })

  test('must arrive in time', async () => {
    const client = await open()
    await client.arrived()
    passTime(server.settings.handshakeMs)
    expect(await client.refusal()).toMatchObject({ code: 'handshake_timeout', closeCode: 1008 })
    const connections = () => server.sessions.metrics().connections
    await eventually('everything is released', () => connections() === 0)
    endPassedTime()
  })

  test('may have arrived while the process was frozen beyond its deadline', async () => {
    const client = await open()
    await client.arrived()
    client.sendFrame(1, '{"type":"session_start"}')
    Bun.sleepSync(frozenMs)
    passTime(server.settings.handshakeMs)
    await eventually('the session begins', () => client.of('session_ready').length === 1)
    endPassedTime()
    await client.end()
  })

  test('may be long text, unlike later messages', async () => {
    expect(await refusalOf(`{"x":"${'a'.repeat(70_000)}"}`)).toMatchObject({
      code: 'frame_too_large',
      closeCode: 1009,
    })
  })
})

test('audio sent before session_ready is queued and transcribed in full', async () => {
  const speech = speak([{ silenceMs: 200, words: 12 }], 400)
  const client = await open()
  client.send({ type: 'session_start' })
  const bytes = pcmBytes(speech.samples)
  for (let at = 0; at < bytes.length; at += 3_200) client.sendAudio(bytes.subarray(at, at + 3_200))
  client.send({ type: 'session_end' })
  const { stats } = await client.waitFor('session_end')
  expect(client.frames()[0]?.type).toBe('session_ready')
  expect(client.finals().join(' ')).toBe(speech.words.map(({ word }) => word).join(' '))
  expect(stats.received_bytes).toBe(bytes.length)
})

describe('a later message', () => {
  test.each([
    ['hello', null],
    ['[]', null],
    ['{}', 'type'],
    ['{"type":"finalise"}', 'type'],
    ['{"type":"session_start"}', 'type'],
    ['{"type":"finalize","id":""}', 'id'],
    ['{"type":"finalize","id":7}', 'id'],
  ])('%s is refused with the invalid field', async (message, param) => {
    const client = await open()
    await client.start()
    client.sendFrame(1, message)
    const refusal = { code: 'invalid_message', closeCode: 1008, param }
    expect(await client.refusal()).toMatchObject(refusal)
    expect(client.of('error')[0]?.stats?.received_bytes).toBe(0)
  })

  test('that is too long is refused before the limit of Bun', async () => {
    const client = await open()
    await client.start()
    client.sendAudio(new Uint8Array(262_144))
    client.sendAudio(new Uint8Array(262_145))
    expect(await client.refusal()).toMatchObject({ code: 'frame_too_large', closeCode: 1009 })
  })
})
