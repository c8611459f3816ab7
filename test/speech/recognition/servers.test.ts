import { afterEach, expect, test } from 'bun:test'
import { EnginePool } from '#speech/engines/pool.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps, tone } from '#test/support/engine-session.ts'
import { recordPool } from '#test/support/recognition-recorder.ts'
import {
  type DeepgramPeer,
  type DeepgramScript,
  startDeepgramPeer,
} from '#test/support/scripted-engines/deepgram-peer.ts'

const peers: DeepgramPeer[] = []
const rate = 16_000

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

async function arrange(script: DeepgramScript) {
  const peer = startDeepgramPeer(script)
  peers.push(peer)
  const deps = engineDeps()
  const engine = createEngine(engineConfig({ kind: 'deepgram', url: peer.url }), deps)
  const recorder = await recordPool(new EnginePool([engine], deps.log), {})
  return { peer, recorder }
}

/** The words of the peer: four per second of any audio, numbered from the start of its session. */
function words(first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, at) => `w${first + at}`)
}

test('a server that needs more audio than may be in flight transcribes all of it', async () => {
  const { recorder } = await arrange({ lookaheadMs: 6_000 })
  await recorder.write(tone(60_000, rate))
  const { type, stats } = await recorder.end()
  expect(type).toBe('ended')
  expect(recorder.words().map((word) => word.toLowerCase())).toEqual(words(1, 240))
  expect(recorder.warnings()).toEqual([])
  expect(stats).toMatchObject({ untranscribedMs: 0, processedIsEstimated: true })
})

test('late texts of a server that reports no progress count as lag', async () => {
  const { recorder } = await arrange({ lookaheadMs: 6_000 })
  await recorder.write(tone(20_000, rate))
  const { stats } = await recorder.end()
  expect(stats.lagMsMax).toBeGreaterThanOrEqual(5_000)
})

test('finalize is exact on a server that refuses it: each turn is a session of its own', async () => {
  const { peer, recorder } = await arrange({ lookaheadMs: 2_000 })
  const boundaries = { a: 1_000, b: 1_500, c: 2_000, d: 4_000 }
  let fromMs = 0
  for (const [id, atMs] of Object.entries(boundaries)) {
    await recorder.write(tone(atMs - fromMs, rate))
    recorder.recognition.finalize(id)
    fromMs = atMs
  }
  await recorder.write(tone(500, rate))
  const { type, stats } = await recorder.end()

  expect(type).toBe('ended')
  const turns = recorder.finals().map(({ text, fromFinalize }) => [text, fromFinalize])
  expect(turns).toEqual([
    ['W1 w2 w3 w4', 'a'],
    ['W1 w2', 'b'],
    ['W1 w2', 'c'],
    ['W1 w2 w3 w4 w5 w6 w7 w8', 'd'],
    ['W1 w2', null],
  ])
  expect(recorder.of('finalized').map(({ id, audioMs }) => [id, audioMs])).toEqual(
    Object.entries(boundaries),
  )
  expect(stats).toMatchObject({ untranscribedMs: 0, receivedMs: 4_500 })
  expect(recorder.warnings()).toEqual(['engine_rollover'])
  // The first session shows that the server refuses; no later one is asked.
  expect(peer.connections.flatMap(({ texts }) => texts).filter(isFinalize)).toHaveLength(1)
})

function isFinalize(text: string): boolean {
  return text.includes('Finalize')
}
