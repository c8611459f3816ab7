import { describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { createGatedEngine } from '#test/support/gated-engine.ts'
import { passTime } from '#test/support/passing-time.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { openSpeech, pcmBytes, type SpeechClient } from '#test/support/speech-client.ts'
import type { SpeechServer } from '#test/support/speech-server.ts'
import { speak } from '#test/support/spoken-numbers.ts'
import { serveSpeech } from './served-speech.ts'

/** Clients that disconnect and resume. */

const speechServers = serveSpeech()
const { start } = speechServers

const speech = speak(
  Array.from({ length: 6 }, () => ({ silenceMs: 500, words: 4 })),
  500,
)
const bytes = pcmBytes(speech.samples)
const wordsSaid = speech.words.map(({ word }) => word).join(' ')

type Ready = Awaited<ReturnType<SpeechClient['start']>>

const claimOf = (ready: Ready, lastSeq: number) => ({
  resume: { session_id: ready.session_id, token: ready.resume_token, last_seq: lastSeq },
})
const lastSeqOf = (client: SpeechClient) => client.frames().at(-1)?.seq ?? 0
const open = (server: SpeechServer) => openSpeech(server.port, { token: speechServers.token })

/** Breaks the connection without a close frame. */
async function lose(server: SpeechServer, client: SpeechClient): Promise<void> {
  client.socket.destroy()
  await eventually('the server detects it', () => server.sessions.metrics().waiting === 1)
}

describe('a client that resumes', () => {
  test.each([0, 1, 3_333, 40_000, 70_001, bytes.length])(
    'after %d bytes continues without loss',
    async (cut) => {
      const server = start()
      const first = await open(server)
      const ready = await first.start()
      if (cut > 0) first.sendAudio(bytes.subarray(0, cut))
      await eventually(
        'some audio has arrived',
        () => cut === 0 || lastSeqOf(first) > 1 || cut < 40_000,
      )
      const lastSeq = lastSeqOf(first)
      const known = first.finals()
      await lose(server, first)

      const second = await open(server)
      const again = await second.start(claimOf(ready, lastSeq))
      expect(again).toMatchObject({
        session_id: ready.session_id,
        resume_token: ready.resume_token,
        resumed: true,
      })
      expect(again.received_bytes).toBeLessThanOrEqual(cut)
      second.sendAudio(bytes.subarray(again.received_bytes))
      const { stats } = await second.end()
      expect([...known, ...second.finals()].join(' ')).toBe(wordsSaid)
      expect(stats).toMatchObject({
        received_bytes: bytes.length,
        audio_ms: bytes.length / 32,
        resumes: 1,
        engine: { sessions: 1 },
      })
      expect(second.frames().every(({ seq }) => seq > lastSeq)).toBe(true)
    },
  )

  test('receives missed frames in order before session_ready', async () => {
    const server = start()
    const first = await open(server)
    const ready = await first.start()
    first.sendAudio(bytes)
    first.send({ type: 'finalize', id: 'f1' })
    await first.waitFor('finalized')
    const all = first.frames().filter(({ type }) => type !== 'session_ready')
    await lose(server, first)
    const second = await open(server)
    await second.start(claimOf(ready, 0))
    const lasting = all.filter((frame) => frame.type !== 'transcript' || frame.is_final)
    expect(second.frames().slice(0, -1)).toEqual(lasting)
    expect(second.frames().at(-1)?.type).toBe('session_ready')
    await second.end()
  })

  test('within a sample and a credit window loses nothing', async () => {
    const server = start()
    const first = await open(server)
    const handshake = { options: { flow: 'credit' } }
    const ready = await first.start(handshake)
    first.sendAudio(bytes.subarray(0, 30_001))
    await first.waitFor('audio_ack')
    await lose(server, first)
    const second = await open(server)
    const again = await second.start(claimOf(ready, lastSeqOf(first)))
    expect(again.received_bytes).toBe(30_001)
    expect(again.flow.mode).toBe('credit')
    expect(again.flow.credit_bytes).toBe(30_001 + 65_536)
    second.sendAudio(bytes.subarray(30_001, 90_000))
    second.send({ type: 'finalize', id: 'x' })
    await second.waitFor('finalized')
    second.sendAudio(bytes.subarray(90_000))
    expect((await second.end()).stats.audio_ms).toBe(bytes.length / 32)
  })

  test('after the end still receives the last finals', async () => {
    const engine = createGatedEngine(createScriptedEngine())
    const server = start({ engines: [engine] })
    const first = await open(server)
    const ready = await first.start()
    first.sendAudio(bytes.subarray(0, 40_000))
    first.send({ type: 'session_end' })
    await eventually('the audio has arrived', () => server.sessions.metrics().queuedBytes === 0)
    await lose(server, first)
    engine.release()
    await eventually('the session has ended', () => server.sessions.metrics().sessions === 0)
    const second = await open(server)
    second.send(claimOf(ready, 1))
    const { stats } = await second.waitFor('session_end')
    expect(second.finals().join(' ')).toBe(wordsSaid.slice(0, second.finals().join(' ').length))
    expect(second.finals().length).toBe(stats.finals)
    expect(second.of('session_ready')).toEqual([])
    await eventually('the socket is closed normally', () => second.closeCode() === 1000)
  })

  test('while the old connection is open takes the session over', async () => {
    const server = start()
    const first = await open(server)
    const ready = await first.start()
    first.sendAudio(bytes.subarray(0, 50_000))
    const second = await open(server)
    const again = await second.start(claimOf(ready, lastSeqOf(first)))
    expect(await first.refusal()).toMatchObject({ code: 'session_taken_over', closeCode: 1008 })
    second.sendAudio(bytes.subarray(again.received_bytes))
    expect((await second.end()).stats.received_bytes).toBe(bytes.length)
    expect(server.sessions.metrics().connections).toBeLessThanOrEqual(1)
  })
})

describe('resuming fails for', () => {
  async function lost() {
    const server = start()
    const client = await open(server)
    const ready = await client.start()
    await lose(server, client)
    return { server, ready }
  }

  test('a wrong token, another user, or another audio format', async () => {
    const { server, ready } = await lost()
    const other = await speechServers.tokenOf('another-user')
    const wrong = [
      [claimOf({ ...ready, resume_token: 'x'.repeat(26) }, 0), { token: speechServers.token }],
      [claimOf({ ...ready, resume_token: 'x' }, 0), { token: speechServers.token }],
      [claimOf({ ...ready, session_id: 'stt_unknown' }, 0), { token: speechServers.token }],
      [claimOf(ready, 0), { token: other }],
      [claimOf(ready, 0), { token: speechServers.token, query: 'encoding=wav' }],
      [
        claimOf(ready, 0),
        { token: speechServers.token, query: 'encoding=pcm_int16&sample_rate_hz=8000' },
      ],
    ] as const
    const messages = new Set<string>()
    for (const [claim, who] of wrong) {
      const client = await openSpeech(server.port, who)
      client.send(claim)
      expect(await client.refusal()).toMatchObject({ code: 'resume_failed', closeCode: 1008 })
      messages.add(client.of('error')[0]?.error.message ?? '')
    }
    expect(messages.size).toBe(1)
    const right = await open(server)
    await right.start(claimOf(ready, 0))
    await right.end()
  })

  test('a session that has expired', async () => {
    const { server, ready } = await lost()
    passTime(server.settings.resumeMs)
    await eventually('the session has expired', () => server.sessions.metrics().sessions === 0)
    const client = await open(server)
    client.send(claimOf(ready, 0))
    expect(await client.refusal()).toMatchObject({ code: 'resume_failed' })
  })

  test('every session if resuming is disabled', async () => {
    const server = start({ speech: { resumeMs: 0 } })
    const client = await open(server)
    expect((await client.start()).resume_token).toBe(null)
    client.socket.destroy()
    await eventually('the session has ended', () => server.sessions.metrics().sessions === 0)
  })
})

test('a waiting session counts towards the limit, and its client may resume it', async () => {
  const server = start({ speech: { sessionsMax: 1 } })
  const client = await open(server)
  const ready = await client.start()
  await lose(server, client)
  expect(server.sessions.metrics()).toMatchObject({ sessions: 1, waiting: 1 })
  const stranger = await openSpeech(server.port, {
    token: await speechServers.tokenOf('another-user'),
  })
  expect(await stranger.refusal()).toMatchObject({ code: 'capacity', closeCode: 1013 })
  const anew = await open(server)
  anew.send({})
  expect(await anew.refusal()).toMatchObject({ code: 'capacity', closeCode: 1013 })
  const back = await open(server)
  await back.start(claimOf(ready, 1))
  await back.end()
})

test('dropped frames are reported with a warning', async () => {
  const server = start({ speech: { resumeCharsMax: 1_024 } })
  const client = await open(server)
  const ready = await client.start()
  client.sendAudio(bytes)
  client.send({ type: 'finalize', id: 'f' })
  await client.waitFor('finalized')
  await lose(server, client)
  const back = await open(server)
  await back.start(claimOf(ready, 1))
  expect(await back.waitFor('warning')).toMatchObject({
    code: 'frames_forgotten',
    details: { after_seq: 1 },
  })
  await back.end()
})
