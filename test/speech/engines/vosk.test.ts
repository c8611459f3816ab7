import { afterEach, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import { createVoskEngine } from '#speech/engines/vosk.ts'
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
  return { peer, deps, engine: createVoskEngine(config, deps) }
}

test('speech becomes partials, then finals with words, times and confidence', async () => {
  const { peer, engine } = arrange({ utteranceWords: 2, wordMs: 400 })
  const heard = await openSession(engine)
  for (let at = 0; at < 80; at += 1) heard.session.write(tone(20, rate))
  await heard.told('final', 2)

  expect(peer.heard().config).toEqual({ sample_rate: rate, words: true, max_alternatives: 0 })
  expect(heard.of('partial').map(({ text }) => text)).toEqual(['u1w1', 'u2w1'])
  expect(heard.of('final')[1]).toEqual({
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
  heard.session.abort()
})

test('small writes go out in frames of 200 ms, and each reply is progress', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  for (let at = 0; at < 100; at += 1) heard.session.write(tone(10, rate))
  await heard.told('progress', 5)

  expect(peer.heard().frames).toEqual([6_400, 6_400, 6_400, 6_400, 6_400])
  expect(heard.of('progress')).toEqual(
    [200, 400, 600, 800, 1_000].map((processedMs) => ({
      type: 'progress',
      processedMs,
      estimated: false,
    })),
  )
  heard.session.abort()
})

test('audio that fills no frame is not kept back for ever', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.write(tone(130, rate))
  await heard.told('progress')

  expect(peer.heard().frames).toEqual([4_160])
  heard.session.abort()
})

test('the rate of the settings is told to the server and decides the length of frames', async () => {
  const { peer, engine } = arrange({}, { sampleRateHz: 8_000 })
  const heard = await openSession(engine)
  heard.session.write(tone(200, 8_000))
  await heard.told('progress')

  expect(engine.sampleRateHz).toBe(8_000)
  expect(peer.heard().config).toMatchObject({ sample_rate: 8_000 })
  expect(peer.heard().frames).toEqual([3_200])
  heard.session.abort()
})

test('the end gives the last final, after all that was written was answered', async () => {
  const { peer, engine } = arrange({ replyDelayMs: 5 })
  const heard = await openSession(engine)
  heard.session.write(tone(1_500, rate))
  heard.session.end()
  heard.session.write(tone(200, rate))
  await heard.told('ended')

  expect(heard.finals()).toEqual(['u1w1 u1w2 u1w3 u1w4 u1w5', 'u2w1 u2w2'])
  expect(peer.heard()).toMatchObject({ audioMs: 1_500, fault: null })
  expect(peer.connections[0]?.texts.at(-1)).toBe('{"eof" : 1}')
  expect(heard.of('progress').at(-1)?.processedMs).toBe(1_500)
  const connection = await peer.connection()
  await eventually('the connection is closed', () => connection.closed !== null)
})

test('finalize closes the utterance, and what follows keeps its place in time', async () => {
  for (const timesRestart of [false, true]) {
    const { peer, engine } = arrange({ utteranceWords: 4, timesRestart })
    const heard = await openSession(engine)
    heard.session.write(tone(500, rate))
    heard.session.finalize()
    await heard.told('finalized')
    heard.session.write(tone(800, rate))
    heard.session.end()
    await heard.told('ended')

    expect(peer.connections[0]?.texts).toContain('{"reset" : 1}')
    expect(
      heard
        .of('final')
        .map(({ text, startMs, endMs, speechFinal }) => [text, startMs, endMs, speechFinal]),
    ).toEqual([
      ['u1w1 u1w2', 0, 400, false],
      ['u2w1 u2w2 u2w3 u2w4', 500, 1_300, true],
    ])
    const kinds = heard.events.map(({ type }) => type)
    expect(kinds.indexOf('finalized')).toBeGreaterThan(kinds.indexOf('final'))
  }
})

test('finalize with nothing to finalize is answered at once, and not sent', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.finalize()
  await heard.told('finalized')
  heard.session.write(tone(200, rate))
  heard.session.finalize()
  await heard.told('finalized', 2)
  heard.session.finalize()
  await heard.told('finalized', 3)

  const resets = peer.connections[0]?.texts.filter((text) => text.includes('reset'))
  expect(resets).toHaveLength(1)
  heard.session.abort()
})

test('a session without audio ends', async () => {
  const { engine } = arrange()
  const heard = await openSession(engine)
  heard.session.end()
  await heard.told('ended')
  expect(heard.finals()).toEqual([])
})

test('an utterance without a text withdraws its partials', async () => {
  const { engine } = arrange({ deaf: true })
  const heard = await openSession(engine)
  heard.session.write(tone(1_000, rate))
  heard.session.end()
  await heard.told('ended')

  expect(heard.finals()).toEqual([])
  expect(heard.of('partial')).toEqual([])
  expect(heard.of('utterance-dropped').length).toBeGreaterThan(0)
})

test('of alternatives the first is taken, and a score is no confidence', async () => {
  const { engine } = arrange({ alternatives: true, utteranceWords: 1 })
  const heard = await openSession(engine)
  heard.session.write(tone(200, rate))
  await heard.told('final')

  expect(heard.of('final')[0]).toMatchObject({
    text: 'u1w1',
    confidence: null,
    words: [{ word: 'u1w1', startMs: 0, endMs: 200, confidence: null }],
  })
  heard.session.abort()
})
