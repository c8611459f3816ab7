import { expect, test } from 'bun:test'
import { EnginePool } from '#speech/engines/pool.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { recordEngines, recordPool } from '#test/support/recognition-recorder.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { sampleRateHz, speak } from '#test/support/spoken-numbers.ts'

/** Ten utterances of one second, each after one second of silence. */
const speech = speak(
  Array.from({ length: 10 }, () => ({ silenceMs: 1_000, words: 10 })),
  1_000,
)
const allWords = speech.words.map(({ word }) => word)

test('a new engine continues after the last final, in the same segment, with a warning', async () => {
  const engine = createScriptedEngine({ scripts: [{ crashAtMs: 3_700 }], takeMs: 100 })
  const recorder = await recordEngines({ engines: [engine] })
  await recorder.write(speech.samples)
  await recorder.end()
  expect(recorder.words()).toEqual(allWords)
  const events = recorder.events.filter(({ type }) => type === 'transcript' || type === 'warning')
  const at = events.findIndex(({ type }) => type === 'warning')
  expect(events[at - 1]).toMatchObject({ segment: 2, text: '11 12 13 14 15 16 17' })
  expect(events[at]).toMatchObject({
    code: 'engine_rollover',
    details: { reason: 'failed', from: 'scripted', to: 'scripted', at_ms: 2_000 },
  })
  // While the new engine repeats the text, the stable prefix stays.
  expect(events.slice(at + 1, at + 4)).toMatchObject([
    { segment: 2, rev: 8, text: '11 12 13 14 15 16' },
    { segment: 2, rev: 9, text: '11 12 13 14 15 16 17' },
    { segment: 2, rev: 10, text: '11 12 13 14 15 16 17 18' },
  ])
})

test('another engine is preferred over the failed one', async () => {
  const first = createScriptedEngine({ name: 'first', scripts: [{ crashAtMs: 1_500 }] })
  const second = createScriptedEngine({ name: 'second' })
  const recorder = await recordEngines({ engines: [first, second] })
  await recorder.write(speech.samples)
  const { stats } = await recorder.end()
  expect(recorder.words()).toEqual(allWords)
  expect(recorder.recognition.engine.name).toBe('first')
  expect(stats.engine).toEqual({ name: 'second', sessions: 2, rollovers: 1 })
})

test('an engine that stalls is replaced', async () => {
  const engine = createScriptedEngine({ scripts: [{ stallAtMs: 2_500 }] })
  const recorder = await recordEngines({ engines: [engine], settings: { engineStallMs: 500 } })
  await recorder.write(speech.samples)
  await recorder.end()
  expect(recorder.words()).toEqual(allWords)
  expect(recorder.of('warning')).toMatchObject([{ details: { reason: 'stalled' } }])
  expect(engine.running()).toBe(0)
})

/** It would not count as mute; with this much audio without a final it is asked for its finals. */
const fullSoon = { muteMs: 60_000, replayMsMax: 3_000 }

for (const [title, settings] of [
  ['an engine that returns no text for speech is replaced without loss', { muteMs: 3_000 }],
  ['speech that an engine omits when asked for finals is given to another one', fullSoon],
] as const) {
  test(title, async () => {
    const engine = createScriptedEngine({ scripts: [{ muteFromMs: 4_000 }] })
    const recorder = await recordEngines({ engines: [engine], settings })
    await recorder.write(speech.samples)
    const { stats } = await recorder.end()
    expect(recorder.words()).toEqual(allWords)
    expect(recorder.warnings()).toEqual(['engine_mute', 'engine_rollover'])
    expect(recorder.of('warning')[0]?.details).toMatchObject({ start_ms: 5_000, replaced: true })
    expect(stats.untranscribedMs).toBe(0)
  })
}

test('speech that two engines omit is reported and counted, and not tried again', async () => {
  const engine = createScriptedEngine({ scripts: [{ muteFromMs: 4_000 }, { muteFromMs: 0 }] })
  const recorder = await recordEngines({ engines: [engine], settings: fullSoon })
  await recorder.write(speech.samples)
  const ending = await recorder.end()
  expect(ending.type).toBe('ended')
  const warnings = recorder.of('warning').filter(({ code }) => code === 'engine_mute')
  expect(warnings.slice(0, 2)).toMatchObject([
    { details: { start_ms: 5_000, replaced: true } },
    { details: { start_ms: 5_000, replaced: false } },
  ])
  // Later speech is tried again once.
  expect(warnings[2]?.details).toMatchObject({ replaced: true })
  expect(ending.stats.engine.sessions).toBe(3)
  expect(recorder.words()).toEqual([...allWords.slice(0, 20), ...allWords.slice(30)])
})

test('speech without text from two engines is reported and counted; the session continues', async () => {
  const silent = { muteFromMs: 0 }
  const engine = createScriptedEngine({ scripts: [silent, silent, silent] })
  const recorder = await recordEngines({ engines: [engine], settings: { muteMs: 3_000 } })
  await recorder.write(speech.samples)
  const ending = await recorder.end()
  expect(ending.type).toBe('ended')
  expect(recorder.warnings()).toEqual(['engine_mute', 'engine_rollover', 'engine_mute'])
  expect(ending.stats.untranscribedMs).toBe(10_000)
})

test('an engine without partials is not considered silent during continuous speech', async () => {
  const engine = createScriptedEngine({ hasPartials: false })
  const recorder = await recordEngines({ engines: [engine], settings: { muteMs: 1_000 } })
  const long = speak([{ silenceMs: 500, words: 40 }], 1_000)
  await recorder.write(long.samples)
  await recorder.end()
  expect(recorder.words()).toEqual(long.words.map(({ word }) => word))
  expect(recorder.warnings()).toEqual([])
})

test("at the engine's session limit the engine is changed in a pause, any number of times", async () => {
  const engine = createScriptedEngine({ sessionMsMax: 4_000, sessionsMax: 1 })
  const recorder = await recordEngines({ engines: [engine], settings: { rolloversMax: 0 } })
  await recorder.write(speech.samples)
  const ending = await recorder.end()
  expect(ending.type).toBe('ended')
  expect(recorder.words()).toEqual(allWords)
  expect(ending.stats.engine.rollovers).toBeGreaterThan(3)
  for (const { details } of recorder.of('warning')) expect(details['reason']).toBe('limit')
})

test('without an available engine the session pauses, warns once and continues later', async () => {
  const engine = createScriptedEngine({
    scripts: [{ crashAtMs: 2_500 }, { refusal: 'unreachable' }, { refusal: 'busy' }],
  })
  const recorder = await recordEngines({ engines: [engine] })
  const writing = recorder.write(speech.samples)
  await eventually('the session waits', () => recorder.warnings().includes('engine_waiting'))
  expect(recorder.recognition.writableMs()).toBe(0)
  await writing
  await recorder.end()
  expect(recorder.warnings()).toEqual(['engine_waiting', 'engine_rollover'])
  expect(recorder.words()).toEqual(allWords)
})

test('without an engine for too long the session fails and lists the gaps', async () => {
  const refusals = Array.from({ length: 50 }, () => ({ refusal: 'unreachable' as const }))
  const engine = createScriptedEngine({ scripts: [{ crashAtMs: 2_500 }, ...refusals] })
  const recorder = await recordEngines({ engines: [engine], settings: { engineStallMs: 150 } })
  await recorder.write(speech.samples)
  const ending = await recorder.ending()
  expect(ending).toMatchObject({ type: 'failed', code: 'engine_failed' })
  expect(recorder.words()).toEqual(allWords.slice(0, 10))
  expect(ending.stats.gaps[0]?.startMs).toBe(3_000)
})

test('after the maximum of engine failures the session fails with the last cause', async () => {
  const causes = [
    { script: { crashAtMs: 500 }, code: 'engine_failed' },
    { script: { stallAtMs: 500 }, code: 'engine_stalled' },
  ]
  for (const { script, code } of causes) {
    const engine = createScriptedEngine({ scripts: Array.from({ length: 9 }, () => script) })
    const recorder = await recordEngines({
      engines: [engine],
      settings: { rolloversMax: 3, engineStallMs: 500 },
    })
    await recorder.write(speech.samples)
    const ending = await recorder.ending()
    expect(ending).toMatchObject({ type: 'failed', code })
    expect(ending.stats.engine).toMatchObject({ sessions: 4, rollovers: 3 })
    expect(engine.running()).toBe(0)
  }
})

test('an engine that fails during its last finals is replaced, and the next one returns them', async () => {
  const { samples, words } = speak([{ silenceMs: 500, words: 12 }])
  for (const script of [{ crashAtMs: 1_600 }, { crashAtMs: 1_700 }]) {
    const engine = createScriptedEngine({ scripts: [script], takeMs: 100, pauseMs: 2 })
    const recorder = await recordEngines({ engines: [engine] })
    recorder.recognition.write(samples)
    recorder.recognition.finalize('f')
    const { type } = await recorder.end()
    expect(type).toBe('ended')
    expect(recorder.words()).toEqual(words.map(({ word }) => word))
    expect(recorder.of('finalized')).toEqual([{ type: 'finalized', id: 'f', audioMs: 1_700 }])
    expect(recorder.warnings()).toEqual(['engine_rollover'])
  }
})

test('a new engine with another sample rate receives resampled audio with the same times', async () => {
  const first = createScriptedEngine({ name: 'first', scripts: [{ crashAtMs: 2_500 }] })
  const demo = createEngine(
    engineConfig({ kind: 'demo', name: 'other', sampleRateHz: 8_000 }),
    engineDeps(),
  )
  const recorder = await recordPool(new EnginePool([first, demo], engineDeps().log), {})
  await recorder.write(lowTone(4_000))
  const { stats } = await recorder.end()
  expect(stats.engine.name).toBe('other')
  expect(stats.untranscribedMs).toBe(0)
  const [final] = recorder.finals()
  expect(final?.text).toContain('[speech 2.0')
  expect(Math.abs((final?.startMs ?? 0) - 1_000)).toBeLessThanOrEqual(40)
  expect(Math.abs((final?.endMs ?? 0) - 3_000)).toBeLessThanOrEqual(40)
})

/** A tone below every Nyquist frequency, with one second of silence before and after. */
function lowTone(ms: number): Int16Array {
  const second = sampleRateHz
  const samples = new Int16Array((ms * sampleRateHz) / 1000)
  return samples.map((_, at) =>
    at < second || at >= samples.length - second ? 0 : Math.round(6_000 * Math.sin(at / 8)),
  )
}
