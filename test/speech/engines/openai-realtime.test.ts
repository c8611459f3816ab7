import { afterEach, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import { createOpenAiRealtimeEngine } from '#speech/engines/openai-realtime/engine.ts'
import {
  engineConfig,
  engineDeps,
  openSession,
  silence,
  tone,
} from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  completedOf,
  type RealtimePeer,
  type RealtimeScript,
  startRealtimePeer,
} from '#test/support/scripted-engines/realtime-peer.ts'

const peers: RealtimePeer[] = []
const rate = 24_000

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

function arrange(script: RealtimeScript = {}, given: Partial<EngineConfig> = {}) {
  const peer = startRealtimePeer(script)
  peers.push(peer)
  const deps = engineDeps()
  const dialect = script.dialect ?? 'ga'
  const config = engineConfig({ kind: 'openai-realtime', url: peer.url, dialect, ...given })
  return { peer, deps, engine: createOpenAiRealtimeEngine(config, deps) }
}

test('speech becomes partials from deltas, then finals with the times of its turn', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  expect(engine.sampleRateHz).toBe(rate)
  for (let at = 0; at < 2; at += 1) {
    heard.session.write(silence(200, rate))
    heard.session.write(tone(500, rate))
    heard.session.write(silence(700, rate))
  }
  await heard.told('final', 2)

  expect(heard.of('partial').map(({ text }) => text)).toEqual(['item', 'item 1', 'item', 'item 2'])
  expect(heard.of('final')[1]).toEqual({
    type: 'final',
    text: 'item 2',
    startMs: 1_600,
    endMs: 2_100,
    words: [],
    confidence: null,
    speechFinal: true,
  })
  expect(heard.of('speech-start').map(({ atMs }) => atMs)).toEqual([200, 1_600])
  expect(peer.heard().commits).toBe(0)
  expect(peer.heard().fault).toBeNull()
  heard.session.abort()
})

test('the session is configured as the present protocol wants it', async () => {
  const { peer, engine } = arrange({ key: 'k-1' }, { key: 'k-1', model: 'gpt-4o-transcribe' })
  const options = { language: 'de', vocabulary: ['Sluice', 'Brno'], endpointingMs: 300 } as const
  const heard = await openSession(engine, options)

  const { request } = await peer.connection()
  expect(request.url.search).toBe('?intent=transcription')
  expect(request.headers.has('openai-beta')).toBe(false)
  expect(peer.heard().session).toEqual({
    type: 'transcription',
    audio: {
      input: {
        format: { type: 'audio/pcm', rate: 24_000 },
        transcription: { model: 'gpt-4o-transcribe', language: 'de', prompt: 'Sluice, Brno' },
        turn_detection: { type: 'server_vad', silence_duration_ms: 300 },
      },
    },
  })
  heard.session.abort()
})

test('the session is configured as the protocol before wanted it', async () => {
  const { peer, engine } = arrange({ dialect: 'beta' }, { model: 'whisper-large' })
  const heard = await openSession(engine, { language: 'cs' })
  heard.session.write(tone(300, rate))
  heard.session.end()
  await heard.told('ended')

  expect(heard.finals()).toEqual(['item 1'])
  const { request } = await peer.connection()
  expect(request.url.search).toBe('?intent=transcription&model=whisper-large')
  expect(peer.heard().session).toEqual({
    input_audio_format: 'pcm16',
    input_audio_transcription: { model: 'whisper-large', language: 'cs' },
    turn_detection: { type: 'server_vad', silence_duration_ms: 600 },
  })
})

test('small writes go out as appends of 100 ms, and progress is an estimate', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  for (let at = 0; at < 100; at += 1) heard.session.write(silence(20, rate))
  await eventually('all of it is reckoned as processed', () => {
    return heard.of('progress').at(-1)?.processedMs === 2_000
  })

  expect(peer.heard().appends).toEqual(Array.from({ length: 20 }, () => 4_800))
  expect(heard.of('progress').every(({ estimated }) => estimated)).toBe(true)
  heard.session.abort()
})

test('the estimate goes no faster than the settings allow', async () => {
  const { engine } = arrange({}, { paceMax: 2 })
  const heard = await openSession(engine)
  const begunAt = performance.now()
  heard.session.write(silence(500, rate))
  await eventually('all of it is reckoned as processed', () => {
    return heard.of('progress').at(-1)?.processedMs === 500
  })
  expect(performance.now() - begunAt).toBeGreaterThanOrEqual(240)
  heard.session.abort()
})

test('finalize commits what is being said, and is answered behind its final', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.write(tone(450, rate))
  heard.session.finalize()
  await heard.told('finalized')

  expect(heard.of('final')).toMatchObject([{ text: 'item 1', startMs: 0, speechFinal: false }])
  expect(heard.events.at(-1)?.type).toBe('finalized')
  heard.session.finalize()
  await heard.told('finalized', 2)
  expect(peer.heard()).toMatchObject({ commits: 1, emptyCommits: 0 })
  heard.session.abort()
})

test('silence, and less than 100 ms, are not committed', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.finalize()
  await heard.told('finalized')
  heard.session.write(tone(90, rate))
  heard.session.finalize()
  await heard.told('finalized', 2)
  heard.session.write(silence(800, rate))
  await heard.told('final')
  heard.session.write(silence(800, rate))
  heard.session.finalize()
  await heard.told('finalized', 3)
  heard.session.end()
  await heard.told('ended')
  expect(peer.heard().commits).toBe(0)
})

test('a commit that meets a pause that the server found is no failure', async () => {
  const { peer, engine } = arrange({ manual: true })
  const heard = await openSession(engine)
  heard.session.write(tone(300, rate))
  heard.session.write(silence(500, rate))
  await heard.told('speech-start')
  heard.session.write(silence(100, rate))
  heard.session.finalize()
  const connection = await peer.connection()
  await eventually('it was committed', () => peer.heard().commits === 1)
  connection.send(completedOf(1, 'hello'))
  await heard.told('finalized')
  expect(peer.heard().emptyCommits).toBe(1)
  expect(heard.finals()).toEqual(['hello'])
  heard.session.abort()
})

test('the end waits for every item', async () => {
  const { peer, engine } = arrange({ manual: true })
  const heard = await openSession(engine)
  heard.session.write(tone(300, rate))
  heard.session.write(silence(700, rate))
  heard.session.write(tone(300, rate))
  heard.session.end()
  const connection = await peer.connection()
  await eventually('the rest was committed', () => peer.heard().commits === 1)
  connection.send(completedOf(2, 'second'))
  connection.send(completedOf(1, 'first'))
  await heard.told('ended')

  expect(heard.finals()).toEqual(['first', 'second'])
  expect(heard.of('progress').at(-1)?.processedMs).toBe(1_300)
  await eventually('the connection is closed', () => connection.closed !== null)
})

test('a server that leaves before the last final has failed', async () => {
  const { peer, engine } = arrange({ manual: true })
  const heard = await openSession(engine)
  heard.session.write(tone(300, rate))
  heard.session.end()
  const connection = await peer.connection()
  await eventually('the rest was committed', () => peer.heard().commits === 1)
  connection.close(1000)
  await heard.told('failed')
  expect(heard.of('failed')[0]?.error.kind).toBe('broken')
})

test('where the model looks for no pauses they are found here and committed', async () => {
  const { peer, engine } = arrange({ refusesTurns: true })
  const heard = await openSession(engine, { endpointingMs: 500 })
  heard.session.write(silence(500, rate))
  heard.session.write(tone(800, rate))
  heard.session.write(silence(1_000, rate))
  heard.session.write(tone(400, rate))
  heard.session.end()
  await heard.told('ended')

  expect(peer.heard().commits).toBe(2)
  expect(heard.of('final').map(({ text, startMs, endMs }) => [text, startMs, endMs])).toEqual([
    ['item 1', 500, 1_300],
    ['item 2', 2_300, 2_700],
  ])
})
