import { afterEach, expect, test } from 'bun:test'
import type { Config } from '#config/schema.ts'
import { EnginePool } from '#speech/engines/pool.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps } from '#test/support/engine-session.ts'
import { recordPool } from '#test/support/recognition-recorder.ts'
import {
  type SlowPeer,
  type SlowScript,
  startSlowPeer,
} from '#test/support/scripted-engines/slow-peer.ts'
import { speak } from '#test/support/spoken-numbers.ts'

const peers: SlowPeer[] = []

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

/** Half a minute of speech with pauses, far more than all limits of `shortLimits`. */
const speech = speak(
  Array.from({ length: 20 }, () => ({ silenceMs: 500, words: 10 })),
  500,
)
const allWords = speech.words.map(({ word }) => word)
const endless = { takeMs: 1, pauseMs: 1, firstPauseMs: Number.POSITIVE_INFINITY }
const quick = { takeMs: 10_000, pauseMs: 0 }
/** An engine would count as mute as soon as it is not asked first. */
const shortLimits = { muteMs: 300, replayMsMax: 3_000, engineStallMs: 60_000 }

async function transcribe(
  scripts: readonly [SlowScript, ...SlowScript[]],
  settings: Partial<Config['speech']> = shortLimits,
) {
  const peer = startSlowPeer(scripts)
  peers.push(peer)
  const deps = engineDeps()
  const engine = createEngine(engineConfig({ kind: 'deepgram', url: peer.url }), deps)
  const recorder = await recordPool(new EnginePool([engine], deps.log), { settings })
  await recorder.write(speech.samples)
  const { type, stats } = await recorder.end()
  return { peer, recorder, type, stats, reasons: recorder.of('warning').map(reasonOf) }
}

function reasonOf({ code, details }: { code: string; details: Record<string, unknown> }): string {
  return `${code} ${details['reason'] ?? ''}`.trim()
}

for (const refusesFinalize of [false, true]) {
  const name = refusesFinalize ? 'refuses finalize' : 'answers finalize'
  test(`a server that is slow and ${name} is neither replaced nor loses text`, async () => {
    const { peer, recorder, type, stats, reasons } = await transcribe([
      { takeMs: 400, pauseMs: 10, firstPauseMs: 1_000, refusesFinalize },
    ])
    expect(type).toBe('ended')
    expect(recorder.words()).toEqual(allWords)
    // Before its first result it is not known that the server refuses.
    expect(reasons).toEqual(refusesFinalize ? ['engine_rollover limit'] : [])
    expect(stats.untranscribedMs).toBe(0)
    // What a replacement could not receive again is not sent either.
    expect(peer.arrearsMsMax()).toBeLessThanOrEqual(shortLimits.replayMsMax + 200)
  })

  test(`a server that returns bursts and ${name} is neither replaced nor loses text`, async () => {
    const { recorder, type, reasons } = await transcribe([
      { takeMs: 6_000, pauseMs: 400, firstPauseMs: 400, refusesFinalize },
    ])
    expect(type).toBe('ended')
    expect(recorder.words()).toEqual(allWords)
    // It comes to the limit of a session only if the speech is written faster than it is taken.
    expect(refusesFinalize ? ['', 'engine_rollover limit'] : ['']).toContain(reasons.join())
  })
}

for (const kind of ['frame', 'ping'] as const) {
  const life = { kind, everyMs: 20 }
  const stalledSoon = { ...shortLimits, engineStallMs: 1_000, finalizeMs: 1_000 }

  test(`a server without text may take longer while it sends a ${kind} now and then`, async () => {
    const slow = { takeMs: 10_000, pauseMs: 0, firstPauseMs: 2_000, life }
    const { recorder, type, reasons } = await transcribe([slow], stalledSoon)
    expect(type).toBe('ended')
    expect(recorder.words()).toEqual(allWords)
    expect(reasons).toEqual([])
  })

  test(`a server that never sends more than a ${kind} is replaced without loss`, async () => {
    const { recorder, type, reasons } = await transcribe([{ ...endless, life }, quick], stalledSoon)
    expect(type).toBe('ended')
    expect(recorder.words()).toEqual(allWords)
    expect(new Set(reasons)).toEqual(new Set(['engine_rollover stalled']))
  })
}

test('a silent server is replaced without loss, even if it was only slow', async () => {
  const slow = { takeMs: 10_000, pauseMs: 0, firstPauseMs: 30_000 }
  const settings = { ...shortLimits, engineStallMs: 1_000 }
  const { recorder, type, reasons } = await transcribe([slow, quick], settings)
  expect(type).toBe('ended')
  expect(recorder.words()).toEqual(allWords)
  expect(new Set(reasons)).toEqual(new Set(['engine_rollover stalled']))
})
