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
  type NemoPeer,
  type NemoScript,
  startNemoPeer,
} from '#test/support/scripted-engines/nemo-peer.ts'

const peers: NemoPeer[] = []
const rate = 16_000

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

function arrange(script: NemoScript = {}, given: Partial<EngineConfig> = {}) {
  const peer = startNemoPeer(script)
  peers.push(peer)
  const deps = engineDeps()
  const nemo = { kind: 'openai-realtime', dialect: 'nemo', url: peer.url } as const
  const engine = createEngine(engineConfig({ ...nemo, ...given }), deps)
  return { peer, deps, engine }
}

test('binary audio becomes partials, then finals with words, times and confidence', async () => {
  const { peer, engine } = arrange({ endpointing: true })
  const recorder = await openSession(engine, { language: 'sk', vocabulary: ['Žilina'] })
  recorder.session.write(silence(200, rate))
  recorder.session.write(tone(400, rate))
  recorder.session.write(silence(600, rate))
  await recorder.waitFor('final')

  expect(peer.received().session).toEqual({
    sample_rate: rate,
    language: 'sk-SK',
    automatic_punctuation: true,
    word_timestamps: true,
    endpointing_ms: 600,
    speech_contexts: [{ phrases: ['Žilina'], boost: 3 }],
  })
  expect(new Set(peer.received().frames)).toEqual(new Set([3_200]))
  expect(recorder.of('partial').map(({ text }) => text)).toEqual(['s1w1', 's1w1 s1w2'])
  expect(recorder.of('final')[0]).toEqual({
    type: 'final',
    text: 's1w1 s1w2',
    startMs: 200,
    endMs: 600,
    words: [
      { word: 's1w1', startMs: 200, endMs: 400, confidence: 0.8 },
      { word: 's1w2', startMs: 400, endMs: 600, confidence: 0.8 },
    ],
    confidence: 0.8,
    speechFinal: true,
  })
  expect(peer.received().commits).toBe(0)
  recorder.session.abort()
})

test('server times restart at a commit, session times continue', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.write(tone(500, rate))
  recorder.session.finalize()
  await recorder.waitFor('finalized')
  recorder.session.write(tone(400, rate))
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(
    recorder
      .of('final')
      .map(({ text, startMs, endMs, speechFinal }) => [text, startMs, endMs, speechFinal]),
  ).toEqual([
    ['s1w1 s1w2', 0, 400, false],
    ['s2w1 s2w2', 500, 900, true],
  ])
  expect(peer.received()).toMatchObject({ commits: 2, fault: null })
  expect(recorder.of('progress').at(-1)?.processedMs).toBe(900)
})

test('if the server detects no pauses, commits are sent at our own', async () => {
  const { peer, engine } = arrange({ endpointing: false })
  const recorder = await openSession(engine, { endpointingMs: 400 })
  recorder.session.write(tone(400, rate))
  // The partials must have come before the pause is noticed.
  await recorder.waitFor('partial', 2)
  recorder.session.write(silence(1_500, rate))
  await recorder.waitFor('final')

  expect(recorder.of('final')[0]).toMatchObject({ text: 's1w1 s1w2', speechFinal: true })
  expect(peer.received().commits).toBe(1)
  recorder.session.abort()
})

test('finalize and end are answered without speech', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.finalize()
  await recorder.waitFor('finalized')
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(peer.received().commits).toBe(0)
})

test('a revised text replaces the partial instead of being appended', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  const connection = await peer.connection()
  const type = 'conversation.item.input_audio_transcription.delta'
  const deltas = ['go', ' forward', ' tan', 'go forward ten', ' meters']
  connection.sendTogether(deltas.map((delta) => ({ type, delta })))
  await recorder.waitFor('partial', deltas.length)
  expect(recorder.of('partial').map(({ text }) => text)).toEqual([
    'go',
    'go forward',
    'go forward tan',
    'go forward ten',
    'go forward ten meters',
  ])
  recorder.session.abort()
})

test('too much audio for one stream is a limit, not a failure', async () => {
  const { engine } = arrange({ bytesMax: 6_400 })
  const recorder = await openSession(engine)
  recorder.session.write(tone(400, rate))
  await recorder.waitFor('failed')
  expect(recorder.of('failed')[0]?.error.kind).toBe('limit')
})

test('a wrong key is refused, and the logged close reason is redacted', async () => {
  const { peer, engine, deps } = arrange({ key: 'right-key' }, { key: 'right' })
  await expect(openSession(engine)).rejects.toMatchObject({
    kind: 'refused',
    message: 'the server closed with 1008: invalid bearer token: [redacted]-key',
  })
  expect(deps.lines.join('\n')).toContain('the server closed with 1008')
  expect(deps.lines.join('\n')).not.toContain('right')
  const connection = await peer.connection()
  await eventually('the connection is gone', () => connection.closed !== null)
})
