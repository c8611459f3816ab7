import { expect, test } from 'bun:test'
import { poolEngines } from '#speech/engines/pool.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { hearEngines, hearPool } from '#test/support/heard-recognition.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { sampleRateHz, speak } from '#test/support/spoken-numbers.ts'

/** Ten utterances of a second each, with a second of silence before each. */
const talk = speak(
  Array.from({ length: 10 }, () => ({ silenceMs: 1_000, words: 10 })),
  1_000,
)
const allWords = talk.words.map(({ word }) => word)

test('a fresh engine goes on where finals end, in the same segment, and the client is told', async () => {
  const engine = createScriptedEngine({ scripts: [{ crashAtMs: 3_700 }], takeMs: 100 })
  const heard = await hearEngines({ engines: [engine] })
  await heard.write(talk.samples)
  await heard.end()
  expect(heard.words()).toEqual(allWords)
  const told = heard.events.filter(({ type }) => type === 'transcript' || type === 'warning')
  const at = told.findIndex(({ type }) => type === 'warning')
  expect(told[at - 1]).toMatchObject({ segment: 2, text: '11 12 13 14 15 16 17' })
  expect(told[at]).toMatchObject({
    code: 'engine_rollover',
    details: { reason: 'failed', from: 'scripted', to: 'scripted', at_ms: 2_000 },
  })
  // While the fresh engine says again what it hears, what was stable stays.
  expect(told.slice(at + 1, at + 4)).toMatchObject([
    { segment: 2, rev: 8, text: '11 12 13 14 15 16' },
    { segment: 2, rev: 9, text: '11 12 13 14 15 16 17' },
    { segment: 2, rev: 10, text: '11 12 13 14 15 16 17 18' },
  ])
})

test('another engine is preferred to the one that failed', async () => {
  const first = createScriptedEngine({ name: 'first', scripts: [{ crashAtMs: 1_500 }] })
  const second = createScriptedEngine({ name: 'second' })
  const heard = await hearEngines({ engines: [first, second] })
  await heard.write(talk.samples)
  const { stats } = await heard.end()
  expect(heard.words()).toEqual(allWords)
  expect(heard.recognition.engine.name).toBe('first')
  expect(stats.engine).toEqual({ name: 'second', sessions: 2, rollovers: 1 })
})

test('an engine that stalls is replaced', async () => {
  const engine = createScriptedEngine({ scripts: [{ stallAtMs: 2_500 }] })
  const heard = await hearEngines({ engines: [engine], settings: { engineStallMs: 60 } })
  await heard.write(talk.samples)
  await heard.end()
  expect(heard.words()).toEqual(allWords)
  expect(heard.of('warning')).toMatchObject([{ details: { reason: 'stalled' } }])
  expect(engine.running()).toBe(0)
})

test('an engine that finds no words in speech is replaced, and nothing is missing', async () => {
  const engine = createScriptedEngine({ scripts: [{ muteFromMs: 4_000 }] })
  const heard = await hearEngines({ engines: [engine], settings: { muteMs: 3_000 } })
  await heard.write(talk.samples)
  const { stats } = await heard.end()
  expect(heard.words()).toEqual(allWords)
  expect(heard.warnings()).toEqual(['engine_mute', 'engine_rollover'])
  expect(heard.of('warning')[0]?.details).toMatchObject({ start_ms: 5_000, replaced: true })
  expect(stats.untranscribedMs).toBe(0)
})

test('what two engines find no words in is left, told and counted; the session goes on', async () => {
  const mute = { muteFromMs: 0 }
  const engine = createScriptedEngine({ scripts: [mute, mute, mute] })
  const heard = await hearEngines({ engines: [engine], settings: { muteMs: 3_000 } })
  await heard.write(talk.samples)
  const ending = await heard.end()
  expect(ending.type).toBe('ended')
  expect(heard.warnings()).toEqual(['engine_mute', 'engine_rollover', 'engine_mute'])
  expect(ending.stats.untranscribedMs).toBe(10_000)
})

test('an engine without partials is not taken for mute while somebody goes on speaking', async () => {
  const engine = createScriptedEngine({ hasPartials: false })
  const heard = await hearEngines({ engines: [engine], settings: { muteMs: 1_000 } })
  const long = speak([{ silenceMs: 500, words: 40 }], 1_000)
  await heard.write(long.samples)
  await heard.end()
  expect(heard.words()).toEqual(long.words.map(({ word }) => word))
  expect(heard.warnings()).toEqual([])
})

test("at an engine's own limit the session moves on in a pause, however often", async () => {
  const engine = createScriptedEngine({ sessionMsMax: 4_000, sessionsMax: 1 })
  const heard = await hearEngines({ engines: [engine], settings: { rolloversMax: 0 } })
  await heard.write(talk.samples)
  const ending = await heard.end()
  expect(ending.type).toBe('ended')
  expect(heard.words()).toEqual(allWords)
  expect(ending.stats.engine.rollovers).toBeGreaterThan(3)
  for (const { details } of heard.of('warning')) expect(details['reason']).toBe('limit')
})

test('while no engine can be had the session takes nothing in, says so once, and goes on later', async () => {
  const engine = createScriptedEngine({
    scripts: [{ crashAtMs: 2_500 }, { refusal: 'unreachable' }, { refusal: 'busy' }],
  })
  const heard = await hearEngines({ engines: [engine] })
  const writing = heard.write(talk.samples)
  await eventually('it waits', () => heard.warnings().includes('engine_waiting'))
  expect(heard.recognition.writableMs()).toBe(0)
  await writing
  await heard.end()
  expect(heard.warnings()).toEqual(['engine_waiting', 'engine_rollover'])
  expect(heard.words()).toEqual(allWords)
})

test('when no engine can be had for too long the session fails, and says what is missing', async () => {
  const refusals = Array.from({ length: 50 }, () => ({ refusal: 'unreachable' as const }))
  const engine = createScriptedEngine({ scripts: [{ crashAtMs: 2_500 }, ...refusals] })
  const heard = await hearEngines({ engines: [engine], settings: { engineStallMs: 150 } })
  await heard.write(talk.samples)
  const ending = await heard.ending()
  expect(ending).toMatchObject({ type: 'failed', code: 'engine_failed' })
  expect(heard.words()).toEqual(allWords.slice(0, 10))
  expect(ending.stats.gaps[0]?.startMs).toBe(3_000)
})

test('after so many fresh engines the session fails as the last of them did', async () => {
  const causes = [
    { script: { crashAtMs: 500 }, code: 'engine_failed' },
    { script: { stallAtMs: 500 }, code: 'engine_stalled' },
  ]
  for (const { script, code } of causes) {
    const engine = createScriptedEngine({ scripts: Array.from({ length: 9 }, () => script) })
    const heard = await hearEngines({
      engines: [engine],
      settings: { rolloversMax: 3, engineStallMs: 40 },
    })
    await heard.write(talk.samples)
    const ending = await heard.ending()
    expect(ending).toMatchObject({ type: 'failed', code })
    expect(ending.stats.engine).toMatchObject({ sessions: 4, rollovers: 3 })
    expect(engine.running()).toBe(0)
  }
})

test('an engine that dies over its last finals is replaced, and they come from the next', async () => {
  const { samples, words } = speak([{ silenceMs: 500, words: 12 }])
  for (const script of [{ crashAtMs: 1_600 }, { crashAtMs: 1_700 }]) {
    const engine = createScriptedEngine({ scripts: [script], takeMs: 100, pauseMs: 2 })
    const heard = await hearEngines({ engines: [engine] })
    heard.recognition.write(samples)
    heard.recognition.finalize('f')
    const { type } = await heard.end()
    expect(type).toBe('ended')
    expect(heard.words()).toEqual(words.map(({ word }) => word))
    expect(heard.of('finalized')).toEqual([{ type: 'finalized', id: 'f', audioMs: 1_700 }])
    expect(heard.warnings()).toEqual(['engine_rollover'])
  }
})

test('a fresh engine may want another rate: it gets the same sound at the same times', async () => {
  const first = createScriptedEngine({ name: 'first', scripts: [{ crashAtMs: 2_500 }] })
  const demo = createEngine(
    engineConfig({ kind: 'demo', name: 'other', sampleRateHz: 8_000 }),
    engineDeps(),
  )
  const heard = await hearPool(poolEngines([first, demo], engineDeps().log), {})
  await heard.write(lowTone(4_000))
  const { stats } = await heard.end()
  expect(stats.engine.name).toBe('other')
  expect(stats.untranscribedMs).toBe(0)
  const [final] = heard.finals()
  expect(final?.text).toContain('[speech 2.0')
  expect(Math.abs((final?.startMs ?? 0) - 1_000)).toBeLessThanOrEqual(40)
  expect(Math.abs((final?.endMs ?? 0) - 3_000)).toBeLessThanOrEqual(40)
})

/** A tone that every rate can carry, with a second of silence before and after it. */
function lowTone(ms: number): Int16Array {
  const second = sampleRateHz
  const samples = new Int16Array((ms * sampleRateHz) / 1000)
  return samples.map((_, at) =>
    at < second || at >= samples.length - second ? 0 : Math.round(6_000 * Math.sin(at / 8)),
  )
}
