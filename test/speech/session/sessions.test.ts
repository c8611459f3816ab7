import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { SpeechReservation } from '#limits/speech.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { openSpeech, pcmBytes, type SpeechClient } from '#test/support/speech-client.ts'
import { type SpeechServer, startSpeechServer } from '#test/support/speech-server.ts'
import { speak } from '#test/support/spoken-numbers.ts'

/** One session from start to end. */

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

const speech = speak(
  [
    { silenceMs: 300, words: 5 },
    { silenceMs: 600, words: 8 },
  ],
  500,
)
const bytes = pcmBytes(speech.samples)
const wordsSaid = speech.words.map(({ word }) => word).join(' ')

async function begin(handshake?: object, query?: string): Promise<SpeechClient> {
  const client = await openSpeech(server.port, { token, ...(query === undefined ? {} : { query }) })
  await client.start(handshake)
  return client
}

/** Sends the audio in frames of this size. */
function say(client: SpeechClient, audio: Uint8Array, frameBytes: number): void {
  for (let at = 0; at < audio.length; at += frameBytes) {
    client.sendAudio(audio.subarray(at, at + frameBytes))
  }
}

async function isClosed(client: SpeechClient, code: number): Promise<void> {
  await eventually('the socket is closed', () => client.closeCode() === code)
  await eventually('everything is released', () => server.sessions.metrics().connections === 0)
  expect(server.sessions.metrics()).toMatchObject({ sessions: 0, queuedBytes: 0 })
  expect(server.openSockets()).toBe(0)
}

test('speech is transcribed in order, and the statistics add up', async () => {
  const client = await openSpeech(server.port, { token })
  const ready = await client.start({ type: 'session_start', metadata: { call: 'a-1' } })
  expect(ready).toMatchObject({
    seq: 1,
    protocol: 1,
    resumed: false,
    received_bytes: 0,
    lang: 'en',
    engine: { name: 'scripted', features: { words: true } },
    audio: { encoding: 'pcm_int16', sample_rate_hz: 16_000, engine_rate_hz: 16_000 },
    flow: { mode: 'none', credit_bytes: null },
  })
  expect(ready.session_id).toStartWith('stt_')
  say(client, bytes, 640)
  const { stats, reason } = await client.end()
  expect(reason).toBe('client_end')
  expect(client.finals().join(' ')).toEqual(wordsSaid)
  expect(stats).toMatchObject({
    received_bytes: bytes.length,
    discarded_bytes: 0,
    audio_ms: speech.samples.length / 16,
    untranscribed_ms: 0,
    gaps: [],
    words: speech.words.length,
    resumes: 0,
    faults: { clipped_samples: 0, invalid_samples: 0, corrupt_frames: 0, decode_gaps: 0 },
    engine: { name: 'scripted', sessions: 1, rollovers: 0 },
  })
  expect(client.frames().map(({ seq }) => seq)).toEqual(client.frames().map((_, at) => at + 1))
  await isClosed(client, 1000)
  const logged = server.logLines.findLast((line) => line.includes('"request ended"')) ?? ''
  expect(JSON.parse(logged)).toMatchObject({
    session_id: ready.session_id,
    session_end: 'client_end',
    outcome: 'completed',
    close_code: 1000,
    metadata: { call: 'a-1' },
  })
})

test('minutes count even if the session ends before the database has admitted it', async () => {
  const admission = Promise.withResolvers<SpeechReservation>()
  const settled: number[] = []
  const slow = startSpeechServer(gateway, { admit: () => admission.promise })
  try {
    const client = await openSpeech(slow.port, { token })
    await client.start()
    say(client, bytes, 3_200)
    const { stats } = await client.end()
    admission.resolve({ settle: (audioMs) => settled.push(audioMs) })
    await eventually('it is settled', () => settled.length > 0)
    expect(settled).toEqual([stats.audio_ms])
  } finally {
    await slow.stop()
  }
})

test('a final has words and times in seconds from the first sample', async () => {
  const client = await begin()
  say(client, bytes, 3_200)
  await client.end()
  const [first] = client.of('transcript').filter(({ is_final }) => is_final)
  expect(first).toMatchObject({
    segment: 1,
    speech_final: true,
    text: '1 2 3 4 5',
    start: 0.3,
    end: 0.8,
    confidence: null,
    lang: 'en',
    from_finalize: null,
  })
  expect(Object(first)['words'][1]).toEqual({ word: '2', start: 0.4, end: 0.5, confidence: null })
})

test('words and partials are omitted if disabled', async () => {
  const client = await begin({ options: { words: false, partials: false } })
  say(client, bytes, 3_200)
  await client.end()
  const transcripts = client.of('transcript')
  expect(transcripts.length).toBeGreaterThan(0)
  for (const transcript of transcripts) {
    expect(transcript.is_final).toBe(true)
    expect(transcript).not.toContainKey('words')
  }
})

describe('chunking does not matter', () => {
  test.each([1, 7, 333, 65_537])(
    'frames of %d bytes give the same transcript',
    async (frameBytes) => {
      const client = await begin()
      say(client, bytes, frameBytes)
      const { stats } = await client.end()
      expect(client.finals().join(' ')).toBe(wordsSaid)
      expect(stats).toMatchObject({ received_bytes: bytes.length, audio_ms: bytes.length / 32 })
    },
  )

  test('two-channel float32 gives the same words', async () => {
    const client = await begin(
      { audio: { channels: 2, container: 'none' } },
      'encoding=pcm_float32&sample_rate_hz=16000',
    )
    const floats = new Float32Array(speech.samples.length * 2)
    for (const [at, sample] of speech.samples.entries())
      floats.fill(sample / 32_768, 2 * at, 2 * at + 2)
    say(client, new Uint8Array(floats.buffer), 1_111)
    await client.end()
    expect(client.finals().join(' ')).toBe(wordsSaid)
  })
})

test('finalize is answered after the finals of all earlier audio', async () => {
  const client = await begin()
  const half = speak([{ silenceMs: 100, words: 4 }])
  client.sendAudio(pcmBytes(half.samples))
  client.send({ type: 'finalize', id: 'f1' })
  const { audio_ms } = await client.waitFor('finalized')
  expect(audio_ms).toBe(500)
  const types = client.frames().map(({ type }) => type)
  expect(types.indexOf('finalized')).toBeGreaterThan(types.lastIndexOf('transcript'))
  const final = client.of('transcript').find(({ is_final }) => is_final)
  expect(final).toMatchObject({ text: '1 2 3 4', from_finalize: 'f1' })
  client.sendAudio(pcmBytes(half.samples))
  client.send({ type: 'finalize' })
  expect(await client.waitFor('finalized', 1)).toMatchObject({ id: '', audio_ms: 1_000 })
  await client.end()
  expect(client.finals()).toEqual(['1 2 3 4', '1 2 3 4'])
})

test('an empty frame ends the session; later audio is counted and discarded', async () => {
  const client = await begin()
  say(client, bytes, 3_200)
  client.sendAudio(new Uint8Array(0))
  client.sendAudio(new Uint8Array(100))
  client.send({ type: 'finalize', id: 'late' })
  const { stats } = await client.waitFor('session_end')
  expect(client.finals().join(' ')).toBe(wordsSaid)
  expect(client.of('finalized')).toEqual([])
  expect(stats.received_bytes - stats.discarded_bytes).toBe(bytes.length)
})

test('a session without audio ends normally', async () => {
  const client = await begin()
  const { stats } = await client.end()
  expect(stats).toMatchObject({ received_bytes: 0, audio_ms: 0, finals: 0, untranscribed_ms: 0 })
  await isClosed(client, 1000)
})

test('audio of another encoding is refused and the detected encoding named', async () => {
  const client = await begin({}, 'encoding=mp3')
  const header = Buffer.from('RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0', 'latin1')
  client.sendAudio(Buffer.concat([header, Buffer.alloc(4_000)]))
  const refusal = await client.refusal()
  expect(refusal).toMatchObject({
    code: 'wrong_encoding',
    closeCode: 1008,
    details: { encoding: 'wav' },
  })
  expect(client.of('error')[0]?.stats?.received_bytes).toBeGreaterThan(4_000)
  await isClosed(client, 1008)
})

test('a client that closes normally ends its session', async () => {
  const client = await begin()
  client.sendAudio(bytes)
  client.sendFrame(8, new Uint8Array([0x03, 0xe8]))
  await isClosed(client, 1000)
  expect(server.logLines.join()).toContain('"session_end":"client_left"')
})
