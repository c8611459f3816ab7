import { afterEach, expect, test } from 'bun:test'
import { createEngine } from '#speech/engines/registry.ts'
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
  return { peer, engine: createEngine(engineConfig(given), engineDeps()) }
}

test('utterances are cut at pauses, with the times of the detected speech', async () => {
  const { peer, engine } = arrange({ doneMs: 5 })
  const recorder = await openSession(engine, { endpointingMs: 500 })
  expect(engine.sampleRateHz).toBe(rate)
  recorder.session.write(silence(500, rate))
  recorder.session.write(tone(400, rate))
  recorder.session.write(silence(700, rate))
  recorder.session.write(tone(600, rate))
  recorder.session.write(silence(700, rate))
  await recorder.waitFor('final', 2)

  expect(recorder.of('final')).toEqual([
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
  expect(recorder.of('partial').map(({ text }) => text)).toEqual([
    'g1w1',
    'g1w1 g1w2',
    'g2w1',
    'g2w1 g2w2',
    'g2w1 g2w2 g2w3',
  ])
  expect(peer.received()).toMatchObject({ model: 'voxtral', lostMs: 0, fault: null })
  recorder.session.abort()
})

test('no audio is sent while the server would discard it', async () => {
  const { peer, engine } = arrange({ doneMs: 40 })
  const recorder = await openSession(engine, { endpointingMs: 400 })
  for (let at = 0; at < 5; at += 1) {
    recorder.session.write(tone(400, rate))
    recorder.session.write(silence(600, rate))
  }
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(peer.received()).toMatchObject({ audioMs: 5_000, lostMs: 0, fault: null })
  expect(recorder.finals()).toEqual([1, 2, 3, 4, 5].map((n) => `g${n}w1 g${n}w2`))
  expect(recorder.of('progress').at(-1)).toMatchObject({ processedMs: 5_000, estimated: true })
})

test('finalize ends the generation, and the session continues on the same connection', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.finalize()
  await recorder.waitFor('finalized')
  recorder.session.write(tone(450, rate))
  recorder.session.finalize()
  await recorder.waitFor('finalized', 2)
  expect(recorder.of('final')).toMatchObject([
    { text: 'g1w1 g1w2', startMs: 0, speechFinal: false },
  ])

  recorder.session.write(tone(200, rate))
  recorder.session.finalize()
  recorder.session.write(tone(300, rate))
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(recorder.finals()).toEqual(['g1w1 g1w2', 'g2w1', 'g3w1'])
  const kinds = recorder.events.map(({ type }) => type).filter((type) => type !== 'progress')
  expect(kinds.slice(-4)).toEqual(['finalized', 'partial', 'final', 'ended'])
  expect(peer.connections).toHaveLength(1)
  expect(peer.received()).toMatchObject({ lostMs: 0, fault: null })
})

test('a tail of less than 100 ms is padded with silence', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.write(tone(30, rate))
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(peer.received().generations).toEqual([100])
  expect(recorder.of('progress').at(-1)?.processedMs).toBe(30)
})

test('silence is cut within half a minute and gives no final', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.write(silence(31_000, rate))
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(peer.received().generations).toEqual([30_000, 1_000])
  expect(recorder.of('utterance-dropped')).toHaveLength(2)
  expect(recorder.finals()).toEqual([])
})

test('speech without pauses is cut, with speech_final false', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  const spoken = tone(45_000, rate)
  // Steady noise would count as silence; speech rises and falls.
  for (let at = 0; at < spoken.length; at += rate / 4) spoken.fill(0, at, at + rate / 20)
  for (let at = 0; at < spoken.length; at += rate)
    recorder.session.write(spoken.subarray(at, at + rate))
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(recorder.of('final').map(({ speechFinal }) => speechFinal)).toEqual([false, true])
  expect(peer.received().generations).toEqual([40_000, 5_000])
})

test('an error fails the session, because its text would never arrive', async () => {
  const { engine } = arrange({ failAt: 1 })
  const recorder = await openSession(engine)
  recorder.session.write(tone(400, rate))
  recorder.session.end()
  await recorder.waitFor('failed')
  expect(recorder.of('failed')[0]?.error).toMatchObject({ kind: 'broken' })
  expect(recorder.of('failed')[0]?.error.message).toContain('the engine is dead')
})

test('a server that ends an utterance by itself has reached its limit', async () => {
  const { engine } = arrange({ endAfterMs: 500 })
  const recorder = await openSession(engine)
  recorder.session.write(tone(600, rate))
  await recorder.waitFor('failed')
  expect(recorder.of('failed')[0]?.error.kind).toBe('limit')
})
