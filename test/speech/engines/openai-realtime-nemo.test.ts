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
  const engine = createOpenAiRealtimeEngine(engineConfig({ ...nemo, ...given }), deps)
  return { peer, deps, engine }
}

test('binary audio becomes partials, then finals with words, times and confidence', async () => {
  const { peer, engine } = arrange({ endpointing: true })
  const heard = await openSession(engine, { language: 'sk', vocabulary: ['Žilina'] })
  heard.session.write(silence(200, rate))
  heard.session.write(tone(400, rate))
  heard.session.write(silence(600, rate))
  await heard.told('final')

  expect(peer.heard().session).toEqual({
    sample_rate: rate,
    language: 'sk-SK',
    automatic_punctuation: true,
    word_timestamps: true,
    endpointing_ms: 600,
    speech_contexts: [{ phrases: ['Žilina'], boost: 3 }],
  })
  expect(new Set(peer.heard().frames)).toEqual(new Set([3_200]))
  expect(heard.of('partial').map(({ text }) => text)).toEqual(['s1w1', 's1w1 s1w2'])
  expect(heard.of('final')[0]).toEqual({
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
  expect(peer.heard().commits).toBe(0)
  heard.session.abort()
})

test('a commit begins the times of the server anew, and ours go on', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.write(tone(500, rate))
  heard.session.finalize()
  await heard.told('finalized')
  heard.session.write(tone(400, rate))
  heard.session.end()
  await heard.told('ended')

  expect(
    heard
      .of('final')
      .map(({ text, startMs, endMs, speechFinal }) => [text, startMs, endMs, speechFinal]),
  ).toEqual([
    ['s1w1 s1w2', 0, 400, false],
    ['s2w1 s2w2', 500, 900, true],
  ])
  expect(peer.heard()).toMatchObject({ commits: 2, fault: null })
  expect(heard.of('progress').at(-1)?.processedMs).toBe(900)
})

test('a server that finds no pauses is asked for finals at those that are found here', async () => {
  const { peer, engine } = arrange({ endpointing: false })
  const heard = await openSession(engine, { endpointingMs: 400 })
  heard.session.write(tone(400, rate))
  // The partials must have come before the pause is noticed.
  await heard.told('partial', 2)
  heard.session.write(silence(1_500, rate))
  await heard.told('final')

  expect(heard.of('final')[0]).toMatchObject({ text: 's1w1 s1w2', speechFinal: true })
  expect(peer.heard().commits).toBe(1)
  heard.session.abort()
})

test('finalize and the end are answered where nothing was said', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.finalize()
  await heard.told('finalized')
  heard.session.end()
  await heard.told('ended')
  expect(peer.heard().commits).toBe(0)
})

test('a text that the server has changed its mind about is shown anew, not twice', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  const connection = await peer.connection()
  const type = 'conversation.item.input_audio_transcription.delta'
  const deltas = ['go', ' forward', ' tan', 'go forward ten', ' meters']
  connection.sendTogether(deltas.map((delta) => ({ type, delta })))
  await heard.told('partial', deltas.length)
  expect(heard.of('partial').map(({ text }) => text)).toEqual([
    'go',
    'go forward',
    'go forward tan',
    'go forward ten',
    'go forward ten meters',
  ])
  heard.session.abort()
})

test('too much audio for one stream is a limit, and not a failure', async () => {
  const { engine } = arrange({ bytesMax: 6_400 })
  const heard = await openSession(engine)
  heard.session.write(tone(400, rate))
  await heard.told('failed')
  expect(heard.of('failed')[0]?.error.kind).toBe('limit')
})

test('a wrong key is refused with a close code, whose reason is told without the key', async () => {
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
