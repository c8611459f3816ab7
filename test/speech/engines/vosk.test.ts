import { afterEach, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps, openSession, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  startVoskPeer,
  type VoskPeer,
  type VoskScript,
} from '#test/support/scripted-engines/vosk-peer.ts'

const peers: VoskPeer[] = []
const rate = 16_000

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

function arrange(script: VoskScript = {}, given: Partial<EngineConfig> = {}) {
  const peer = startVoskPeer(script)
  peers.push(peer)
  const deps = engineDeps()
  const config = engineConfig({ kind: 'vosk', url: peer.url, ...given })
  return { peer, deps, engine: createEngine(config, deps) }
}

test('speech becomes partials, then finals with words, times and confidence', async () => {
  const { peer, engine } = arrange({ utteranceWords: 2, wordMs: 400 })
  const recorder = await openSession(engine)
  for (let at = 0; at < 80; at += 1) recorder.session.write(tone(20, rate))
  await recorder.waitFor('final', 2)

  expect(peer.received().config).toEqual({ sample_rate: rate, words: true, max_alternatives: 0 })
  expect(recorder.of('partial').map(({ text }) => text)).toEqual(['u1w1', 'u2w1'])
  expect(recorder.of('final')[1]).toEqual({
    type: 'final',
    text: 'u2w1 u2w2',
    startMs: 800,
    endMs: 1_600,
    words: [
      { word: 'u2w1', startMs: 800, endMs: 1_200, confidence: 0.9 },
      { word: 'u2w2', startMs: 1_200, endMs: 1_600, confidence: 0.9 },
    ],
    confidence: 0.9,
    speechFinal: true,
  })
  recorder.session.abort()
})

test('small writes are sent in frames of 200 ms, and each reply is progress', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  for (let at = 0; at < 100; at += 1) recorder.session.write(tone(10, rate))
  await recorder.waitFor('progress', 5)

  expect(peer.received().frames).toEqual([6_400, 6_400, 6_400, 6_400, 6_400])
  expect(recorder.of('progress')).toEqual(
    [200, 400, 600, 800, 1_000].map((processedMs) => ({
      type: 'progress',
      processedMs,
      estimated: false,
    })),
  )
  recorder.session.abort()
})

test('an incomplete frame is sent after a delay', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.write(tone(130, rate))
  await recorder.waitFor('progress')

  expect(peer.received().frames).toEqual([4_160])
  recorder.session.abort()
})

test('the configured sample rate is sent to the server and determines the frame length', async () => {
  const { peer, engine } = arrange({}, { sampleRateHz: 8_000 })
  const recorder = await openSession(engine)
  recorder.session.write(tone(200, 8_000))
  await recorder.waitFor('progress')

  expect(engine.sampleRateHz).toBe(8_000)
  expect(peer.received().config).toMatchObject({ sample_rate: 8_000 })
  expect(peer.received().frames).toEqual([3_200])
  recorder.session.abort()
})

test('end returns the last final after all replies', async () => {
  const { peer, engine } = arrange({ replyDelayMs: 5 })
  const recorder = await openSession(engine)
  recorder.session.write(tone(1_500, rate))
  recorder.session.end()
  recorder.session.write(tone(200, rate))
  await recorder.waitFor('ended')

  expect(recorder.finals()).toEqual(['u1w1 u1w2 u1w3 u1w4 u1w5', 'u2w1 u2w2'])
  expect(peer.received()).toMatchObject({ audioMs: 1_500, fault: null })
  expect(peer.connections[0]?.texts.at(-1)).toBe('{"eof" : 1}')
  expect(recorder.of('progress').at(-1)?.processedMs).toBe(1_500)
  const connection = await peer.connection()
  await eventually('the connection is closed', () => connection.closed !== null)
})

test('finalize ends the utterance without shifting later times', async () => {
  for (const timesRestart of [false, true]) {
    const { peer, engine } = arrange({ utteranceWords: 4, timesRestart })
    const recorder = await openSession(engine)
    recorder.session.write(tone(500, rate))
    recorder.session.finalize()
    await recorder.waitFor('finalized')
    recorder.session.write(tone(800, rate))
    recorder.session.end()
    await recorder.waitFor('ended')

    expect(peer.connections[0]?.texts).toContain('{"reset" : 1}')
    expect(
      recorder
        .of('final')
        .map(({ text, startMs, endMs, speechFinal }) => [text, startMs, endMs, speechFinal]),
    ).toEqual([
      ['u1w1 u1w2', 0, 400, false],
      ['u2w1 u2w2 u2w3 u2w4', 500, 1_300, true],
    ])
    const kinds = recorder.events.map(({ type }) => type)
    expect(kinds.indexOf('finalized')).toBeGreaterThan(kinds.indexOf('final'))
  }
})

test('finalize without new audio is answered immediately and not sent', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.finalize()
  await recorder.waitFor('finalized')
  recorder.session.write(tone(200, rate))
  recorder.session.finalize()
  await recorder.waitFor('finalized', 2)
  recorder.session.finalize()
  await recorder.waitFor('finalized', 3)

  const resets = peer.connections[0]?.texts.filter((text) => text.includes('reset'))
  expect(resets).toHaveLength(1)
  recorder.session.abort()
})

test('a session without audio ends', async () => {
  const { engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(recorder.finals()).toEqual([])
})

test('an utterance without text withdraws its partials', async () => {
  const { engine } = arrange({ deaf: true })
  const recorder = await openSession(engine)
  recorder.session.write(tone(1_000, rate))
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(recorder.finals()).toEqual([])
  expect(recorder.of('partial')).toEqual([])
  expect(recorder.of('utterance-dropped').length).toBeGreaterThan(0)
})

test('the first alternative is used, and an unbounded score is not a confidence', async () => {
  const { engine } = arrange({ alternatives: true, utteranceWords: 1 })
  const recorder = await openSession(engine)
  recorder.session.write(tone(200, rate))
  await recorder.waitFor('final')

  expect(recorder.of('final')[0]).toMatchObject({
    text: 'u1w1',
    confidence: null,
    words: [{ word: 'u1w1', startMs: 0, endMs: 200, confidence: null }],
  })
  recorder.session.abort()
})
