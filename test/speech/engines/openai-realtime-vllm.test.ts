import { afterEach, expect, test } from 'bun:test'
import { createOpenAiRealtimeEngine } from '#speech/engines/openai-realtime/engine.ts'
import {
  engineConfig,
  engineDeps,
  openSession,
  silence,
  tone,
} from '#test/support/engine-session.ts'
import {
  startVllmPeer,
  type VllmPeer,
  type VllmScript,
} from '#test/support/scripted-engines/vllm-peer.ts'

const peers: VllmPeer[] = []
const rate = 16_000

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

function arrange(script: VllmScript = {}) {
  const peer = startVllmPeer(script)
  peers.push(peer)
  const given = {
    kind: 'openai-realtime',
    dialect: 'vllm',
    url: peer.url,
    model: 'voxtral',
  } as const
  return { peer, engine: createOpenAiRealtimeEngine(engineConfig(given), engineDeps()) }
}

test('utterances are cut at pauses, with the times of what was heard in them', async () => {
  const { peer, engine } = arrange({ doneMs: 5 })
  const heard = await openSession(engine, { endpointingMs: 500 })
  expect(engine.sampleRateHz).toBe(rate)
  heard.session.write(silence(500, rate))
  heard.session.write(tone(400, rate))
  heard.session.write(silence(700, rate))
  heard.session.write(tone(600, rate))
  heard.session.write(silence(700, rate))
  await heard.told('final', 2)

  expect(heard.of('final')).toEqual([
    {
      type: 'final',
      text: 'g1w1 g1w2',
      startMs: 500,
      endMs: 900,
      words: [],
      confidence: null,
      speechFinal: true,
    },
    {
      type: 'final',
      text: 'g2w1 g2w2 g2w3',
      startMs: 1_600,
      endMs: 2_200,
      words: [],
      confidence: null,
      speechFinal: true,
    },
  ])
  expect(heard.of('partial').map(({ text }) => text)).toEqual([
    'g1w1',
    'g1w1 g1w2',
    'g2w1',
    'g2w1 g2w2',
    'g2w1 g2w2 g2w3',
  ])
  expect(peer.heard()).toMatchObject({ model: 'voxtral', lostMs: 0, fault: null })
  heard.session.abort()
})

test('no audio is sent while the server would throw it away', async () => {
  const { peer, engine } = arrange({ doneMs: 40 })
  const heard = await openSession(engine, { endpointingMs: 400 })
  for (let at = 0; at < 5; at += 1) {
    heard.session.write(tone(400, rate))
    heard.session.write(silence(600, rate))
  }
  heard.session.end()
  await heard.told('ended')

  expect(peer.heard()).toMatchObject({ audioMs: 5_000, lostMs: 0, fault: null })
  expect(heard.finals()).toEqual([1, 2, 3, 4, 5].map((n) => `g${n}w1 g${n}w2`))
  expect(heard.of('progress').at(-1)).toMatchObject({ processedMs: 5_000, estimated: true })
})

test('finalize ends the generation, and the session goes on on the same connection', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.finalize()
  await heard.told('finalized')
  heard.session.write(tone(450, rate))
  heard.session.finalize()
  await heard.told('finalized', 2)
  expect(heard.of('final')).toMatchObject([{ text: 'g1w1 g1w2', startMs: 0, speechFinal: false }])

  heard.session.write(tone(200, rate))
  heard.session.finalize()
  heard.session.write(tone(300, rate))
  heard.session.end()
  await heard.told('ended')
  expect(heard.finals()).toEqual(['g1w1 g1w2', 'g2w1', 'g3w1'])
  const kinds = heard.events.map(({ type }) => type).filter((type) => type !== 'progress')
  expect(kinds.slice(-4)).toEqual(['finalized', 'partial', 'final', 'ended'])
  expect(peer.connections).toHaveLength(1)
  expect(peer.heard()).toMatchObject({ lostMs: 0, fault: null })
})

test('a tail of less than 100 ms is filled up with silence', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.write(tone(30, rate))
  heard.session.end()
  await heard.told('ended')
  expect(peer.heard().generations).toEqual([100])
  expect(heard.of('progress').at(-1)?.processedMs).toBe(30)
})

test('silence is cut too before it is half a minute long, and gives no final', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.write(silence(31_000, rate))
  heard.session.end()
  await heard.told('ended')
  expect(peer.heard().generations).toEqual([30_000, 1_000])
  expect(heard.of('utterance-dropped')).toHaveLength(2)
  expect(heard.finals()).toEqual([])
})

test('somebody who never pauses is cut, and it is said that it was no pause', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  const spoken = tone(45_000, rate)
  // Steady noise would count as silence; speech rises and falls.
  for (let at = 0; at < spoken.length; at += rate / 4) spoken.fill(0, at, at + rate / 20)
  for (let at = 0; at < spoken.length; at += rate)
    heard.session.write(spoken.subarray(at, at + rate))
  heard.session.end()
  await heard.told('ended')
  expect(heard.of('final').map(({ speechFinal }) => speechFinal)).toEqual([false, true])
  expect(peer.heard().generations).toEqual([40_000, 5_000])
})

test('an error ends the session, because its text would never come', async () => {
  const { engine } = arrange({ failAt: 1 })
  const heard = await openSession(engine)
  heard.session.write(tone(400, rate))
  heard.session.end()
  await heard.told('failed')
  expect(heard.of('failed')[0]?.error).toMatchObject({ kind: 'broken' })
  expect(heard.of('failed')[0]?.error.message).toContain('the engine is dead')
})

test('a server that ends an utterance by itself has reached its limit', async () => {
  const { engine } = arrange({ endAfterMs: 500 })
  const heard = await openSession(engine)
  heard.session.write(tone(600, rate))
  await heard.told('failed')
  expect(heard.of('failed')[0]?.error.kind).toBe('limit')
})
