import { afterEach, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import { createEngine } from '#speech/engines/registry.ts'
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
  return { peer, deps, engine: createEngine(config, deps) }
}

test('speech becomes partials from deltas, then finals with the times of its turn', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  expect(engine.sampleRateHz).toBe(rate)
  for (let at = 0; at < 2; at += 1) {
    recorder.session.write(silence(200, rate))
    recorder.session.write(tone(500, rate))
    recorder.session.write(silence(700, rate))
  }
  await recorder.waitFor('final', 2)

  expect(recorder.of('partial').map(({ text }) => text)).toEqual([
    'item',
    'item 1',
    'item',
    'item 2',
  ])
  expect(recorder.of('final')[1]).toEqual({
    type: 'final',
    text: 'item 2',
    startMs: 1_600,
    endMs: 2_100,
    words: [],
    confidence: null,
    speechFinal: true,
  })
  expect(recorder.of('speech-start').map(({ atMs }) => atMs)).toEqual([200, 1_600])
  expect(peer.received().commits).toBe(0)
  expect(peer.received().fault).toBeNull()
  recorder.session.abort()
})

test('the session is configured in the GA format', async () => {
  const { peer, engine } = arrange({ key: 'k-1' }, { key: 'k-1', model: 'gpt-4o-transcribe' })
  const options = { language: 'de', vocabulary: ['Sluice', 'Brno'], endpointingMs: 300 } as const
  const recorder = await openSession(engine, options)

  const { request } = await peer.connection()
  expect(request.url.search).toBe('?intent=transcription')
  expect(request.headers.has('openai-beta')).toBe(false)
  expect(peer.received().session).toEqual({
    type: 'transcription',
    audio: {
      input: {
        format: { type: 'audio/pcm', rate: 24_000 },
        transcription: { model: 'gpt-4o-transcribe', language: 'de', prompt: 'Sluice, Brno' },
        turn_detection: { type: 'server_vad', silence_duration_ms: 300 },
      },
    },
  })
  recorder.session.abort()
})

test('the session is configured in the beta format', async () => {
  const { peer, engine } = arrange({ dialect: 'beta' }, { model: 'whisper-large' })
  const recorder = await openSession(engine, { language: 'cs' })
  recorder.session.write(tone(300, rate))
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(recorder.finals()).toEqual(['item 1'])
  const { request } = await peer.connection()
  expect(request.url.search).toBe('?intent=transcription&model=whisper-large')
  expect(peer.received().session).toEqual({
    input_audio_format: 'pcm16',
    input_audio_transcription: { model: 'whisper-large', language: 'cs' },
    turn_detection: { type: 'server_vad', silence_duration_ms: 600 },
  })
})

test('small writes are appended in frames of 100 ms, and progress is estimated', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  for (let at = 0; at < 100; at += 1) recorder.session.write(silence(20, rate))
  await eventually('all audio counts as processed', () => {
    return recorder.of('progress').at(-1)?.processedMs === 2_000
  })
  await eventually('the server has received it', () => peer.received().appends.length >= 20)

  expect(peer.received().appends).toEqual(Array.from({ length: 20 }, () => 4_800))
  expect(recorder.of('progress').every(({ estimated }) => estimated)).toBe(true)
  recorder.session.abort()
})

test('estimated progress is limited by pace_max', async () => {
  const { engine } = arrange({}, { paceMax: 2 })
  const recorder = await openSession(engine)
  const begunAt = performance.now()
  recorder.session.write(silence(500, rate))
  await eventually('all audio counts as processed', () => {
    return recorder.of('progress').at(-1)?.processedMs === 500
  })
  expect(performance.now() - begunAt).toBeGreaterThanOrEqual(240)
  recorder.session.abort()
})

test('finalize commits the open utterance and is answered after its final', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.write(tone(450, rate))
  recorder.session.finalize()
  await recorder.waitFor('finalized')

  expect(recorder.of('final')).toMatchObject([{ text: 'item 1', startMs: 0, speechFinal: false }])
  expect(recorder.events.at(-1)?.type).toBe('finalized')
  recorder.session.finalize()
  await recorder.waitFor('finalized', 2)
  expect(peer.received()).toMatchObject({ commits: 1, emptyCommits: 0 })
  recorder.session.abort()
})

test('silence and less than 100 ms are not committed', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.finalize()
  await recorder.waitFor('finalized')
  recorder.session.write(tone(90, rate))
  recorder.session.finalize()
  await recorder.waitFor('finalized', 2)
  recorder.session.write(silence(800, rate))
  await recorder.waitFor('final')
  recorder.session.write(silence(800, rate))
  recorder.session.finalize()
  await recorder.waitFor('finalized', 3)
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(peer.received().commits).toBe(0)
})

test('a commit that coincides with a detected pause is not a failure', async () => {
  const { peer, engine } = arrange({ manual: true })
  const recorder = await openSession(engine)
  recorder.session.write(tone(300, rate))
  recorder.session.write(silence(500, rate))
  await recorder.waitFor('speech-start')
  recorder.session.write(silence(100, rate))
  recorder.session.finalize()
  const connection = await peer.connection()
  await eventually('it was committed', () => peer.received().commits === 1)
  connection.send(completedOf(1, 'hello'))
  await recorder.waitFor('finalized')
  expect(peer.received().emptyCommits).toBe(1)
  expect(recorder.finals()).toEqual(['hello'])
  recorder.session.abort()
})

test('end waits for every item', async () => {
  const { peer, engine } = arrange({ manual: true })
  const recorder = await openSession(engine)
  recorder.session.write(tone(300, rate))
  recorder.session.write(silence(700, rate))
  recorder.session.write(tone(300, rate))
  recorder.session.end()
  const connection = await peer.connection()
  await eventually('the rest was committed', () => peer.received().commits === 1)
  connection.send(completedOf(2, 'second'))
  connection.send(completedOf(1, 'first'))
  await recorder.waitFor('ended')

  expect(recorder.finals()).toEqual(['first', 'second'])
  expect(recorder.of('progress').at(-1)?.processedMs).toBe(1_300)
  await eventually('the connection is closed', () => connection.closed !== null)
})

test('a server that closes before the last final fails the session', async () => {
  const { peer, engine } = arrange({ manual: true })
  const recorder = await openSession(engine)
  recorder.session.write(tone(300, rate))
  recorder.session.end()
  const connection = await peer.connection()
  await eventually('the rest was committed', () => peer.received().commits === 1)
  connection.close(1000)
  await recorder.waitFor('failed')
  expect(recorder.of('failed')[0]?.error.kind).toBe('broken')
})

test('if the model does not detect pauses, they are detected and committed here', async () => {
  const { peer, engine } = arrange({ refusesTurns: true })
  const recorder = await openSession(engine, { endpointingMs: 500 })
  recorder.session.write(silence(500, rate))
  recorder.session.write(tone(800, rate))
  recorder.session.write(silence(1_000, rate))
  recorder.session.write(tone(400, rate))
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(peer.received().commits).toBe(2)
  expect(recorder.of('final').map(({ text, startMs, endMs }) => [text, startMs, endMs])).toEqual([
    ['item 1', 500, 1_300],
    ['item 2', 2_300, 2_700],
  ])
})
