import { expect, test } from 'bun:test'
import type { EngineError } from '#speech/engine.ts'
import { eventually } from '#test/support/eventually.ts'
import { recordEngines } from '#test/support/recognition-recorder.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { sampleRateHz, speak } from '#test/support/spoken-numbers.ts'

const sentences = [
  { silenceMs: 500, words: 7 },
  { silenceMs: 800, words: 12 },
  { silenceMs: 1_200, words: 4 },
]

test('every word is transcribed once, in order, with times, and every millisecond is accounted for', async () => {
  const engine = createScriptedEngine()
  const recorder = await recordEngines({ engines: [engine] })
  expect(recorder.recognition.engine).toMatchObject({ name: 'scripted', features: engine.features })
  expect(recorder.recognition.sampleRateHz).toBe(sampleRateHz)
  const { samples, words } = speak(sentences, 700)
  await recorder.write(samples)
  const { type, stats } = await recorder.end()

  expect(type).toBe('ended')
  expect(recorder.finals().flatMap((final) => final.words)).toEqual(
    words.map((word) => ({ ...word, confidence: null })),
  )
  expect(recorder.finals().map(({ speechFinal }) => speechFinal)).toEqual([true, true, true])
  expect(recorder.warnings()).toEqual([])
  expect(stats).toMatchObject({
    receivedMs: 5_500,
    processedMs: 5_500,
    finalMs: 5_500,
    silenceMs: 500 + 800 + 1_200 + 700,
    untranscribedMs: 0,
    gaps: [],
    processedIsEstimated: false,
    finals: 3,
    words: 23,
    engine: { name: 'scripted', sessions: 1, rollovers: 0 },
  })
  expect(stats.latencyMs.firstPartial).not.toBeNull()
  expect(stats.latencyMs.finalP95 ?? -1).toBeGreaterThanOrEqual(stats.latencyMs.finalP50 ?? 0)
  expect(engine.running()).toBe(0)
})

test('speech-start is emitted once per segment, before its first text', async () => {
  const recorder = await recordEngines({ engines: [createScriptedEngine()] })
  await recorder.write(speak(sentences, 700).samples)
  await recorder.end()
  const events = recorder.events.filter(
    ({ type }) => type === 'speech-start' || type === 'transcript',
  )
  expect(recorder.of('speech-start').map(({ atMs }) => atMs)).toEqual([500, 2_000, 4_400])
  const firstTexts = events.flatMap(({ type }, at) =>
    type === 'speech-start' ? [events[at + 1]] : [],
  )
  expect(firstTexts).toMatchObject([
    { segment: 1, rev: 1 },
    { segment: 2, rev: 1 },
    { segment: 3, rev: 1 },
  ])
})

test('partials and words are omitted if not requested', async () => {
  const recorder = await recordEngines({
    engines: [createScriptedEngine()],
    options: { partials: false, words: false },
  })
  await recorder.write(speak(sentences, 700).samples)
  await recorder.end()
  expect(recorder.of('transcript')).toHaveLength(3)
  expect(recorder.of('transcript').map(({ words }) => words)).toEqual([[], [], []])
})

test('unstable hypotheses appear in the text, never in its stable prefix', async () => {
  const recorder = await recordEngines({ engines: [createScriptedEngine({ isUnstable: true })] })
  await recorder.write(speak([{ silenceMs: 200, words: 20 }], 400).samples)
  await recorder.end()
  const partials = recorder.of('transcript').filter(({ isFinal }) => !isFinal)
  expect(partials.some(({ text }) => text.includes('hm'))).toBe(true)
  expect(partials.some(({ stableText }) => stableText.split(' ').length > 10)).toBe(true)
  for (const { stableText } of partials) expect(stableText).not.toContain('hm')
})

test('an engine that processes nothing receives two seconds, then the client is paused', async () => {
  const engine = createScriptedEngine({ scripts: [{ stallAtMs: 0 }] })
  const { recognition, of } = await recordEngines({ engines: [engine] })
  const piece = new Int16Array(1_600)
  let written = 0
  while (recognition.writableMs() > 0) {
    recognition.write(piece)
    written += piece.length
  }
  expect(written).toBe(2 * sampleRateHz)
  recognition.write(piece)
  expect(recognition.writableMs()).toBe(0)
  expect(engine.inFlightMsMax()).toBe(2_000)
  expect(of('writable')).toEqual([])
  recognition.abort()
})

test('writable is emitted after progress, and only after it was full', async () => {
  const recorder = await recordEngines({ engines: [createScriptedEngine({ takeMs: 100 })] })
  const { samples } = speak([{ silenceMs: 3_000, words: 10 }], 2_000)
  recorder.recognition.write(samples.subarray(0, 1_600))
  await eventually(
    'the audio was processed',
    () => recorder.recognition.progress().processedMs === 100,
  )
  expect(recorder.of('writable')).toEqual([])
  await recorder.write(samples.subarray(1_600))
  await recorder.end()
  expect(recorder.of('writable').length).toBeGreaterThan(0)
})

test('several finalize requests are each answered', async () => {
  const recorder = await recordEngines({ engines: [createScriptedEngine({ takeMs: 100 })] })
  const { samples } = speak([{ silenceMs: 400, words: 8 }], 200)
  const cut = (7 * sampleRateHz) / 10
  await recorder.write(samples.subarray(0, cut))
  recorder.recognition.finalize('a')
  recorder.recognition.finalize('b')
  await recorder.write(samples.subarray(cut))
  recorder.recognition.finalize('c')
  await eventually('all are answered', () => recorder.of('finalized').length === 3)
  expect(recorder.finals().map(({ text, fromFinalize }) => [text, fromFinalize])).toEqual([
    ['1 2 3', 'a'],
    ['4 5 6 7 8', 'c'],
  ])
  expect(recorder.of('finalized')).toEqual([
    { type: 'finalized', id: 'a', audioMs: 700 },
    { type: 'finalized', id: 'b', audioMs: 700 },
    { type: 'finalized', id: 'c', audioMs: 1_400 },
  ])
  recorder.recognition.finalize('d')
  await recorder.end()
  expect(recorder.of('finalized').at(-1)).toEqual({ type: 'finalized', id: 'd', audioMs: 1_400 })
})

test('finals never contain audio from after their finalize, however many are outstanding', async () => {
  // The engine answers each request late and joins utterances that it receives before its answer.
  const engine = createScriptedEngine({ takeMs: 50, pauseMs: 5, answersLate: true })
  const recorder = await recordEngines({ engines: [engine] })
  const { samples } = speak([{ silenceMs: 0, words: 45 }])
  let from = 0
  for (const [id, atMs] of Object.entries({ a: 1_000, b: 1_300, c: 1_600, d: 4_000 })) {
    const until = (atMs * sampleRateHz) / 1000
    await recorder.write(samples.subarray(from, until))
    recorder.recognition.finalize(id)
    from = until
  }
  await recorder.write(samples.subarray(from))
  await recorder.end()

  const numbers = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, at) => String(first + at)).join(' ')
  expect(recorder.finals().map(({ text, fromFinalize }) => [text, fromFinalize])).toEqual([
    [numbers(1, 10), 'a'],
    [numbers(11, 13), 'b'],
    [numbers(14, 16), 'c'],
    [numbers(17, 40), 'd'],
    [numbers(41, 45), null],
  ])
  expect(recorder.of('finalized').map(({ id, audioMs }) => [id, audioMs])).toEqual([
    ['a', 1_000],
    ['b', 1_300],
    ['c', 1_600],
    ['d', 4_000],
  ])
})

test('without engine times, texts are placed on detected speech', async () => {
  const engine = createScriptedEngine({ hasTimes: false })
  const recorder = await recordEngines({ engines: [engine] })
  await recorder.write(speak(sentences, 700).samples)
  const { stats } = await recorder.end()
  expect(recorder.finals().map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [500, 1_200],
    [2_000, 3_200],
    [4_400, 4_800],
  ])
  expect(stats.untranscribedMs).toBe(0)
})

test('omitted words are reported as gaps', async () => {
  const engine = createScriptedEngine({ scripts: [{ muteFromMs: 2_600 }] })
  const recorder = await recordEngines({ engines: [engine] })
  await recorder.write(speak(sentences, 700).samples)
  const { type, stats } = await recorder.end()
  expect(type).toBe('ended')
  expect(stats.gaps).toEqual([
    { startMs: 2_600, endMs: 3_200 },
    { startMs: 4_400, endMs: 4_800 },
  ])
  expect(stats.untranscribedMs).toBe(1_000)
})

test('a lagging live session is warned once', async () => {
  const engine = createScriptedEngine({ takeMs: 100, pauseMs: 5 })
  const settings = { lagMsMax: 500 }
  const live = await recordEngines({ engines: [engine], settings, options: { live: true } })
  await live.write(speak(sentences, 700).samples)
  expect((await live.end()).stats.lagMsMax).toBeGreaterThan(500)
  expect(live.warnings()).toEqual(['engine_lagging'])

  const file = await recordEngines({ engines: [engine], settings })
  await file.write(speak(sentences, 700).samples)
  await file.end()
  expect(file.warnings()).toEqual([])
})

test('missing last finals fail the recognition and are listed as gaps', async () => {
  const engine = createScriptedEngine({ scripts: [{ muteFromMs: 0, isEndless: true }] })
  const recorder = await recordEngines({ engines: [engine], settings: { finalizeMs: 50 } })
  await recorder.write(speak([{ silenceMs: 300, words: 5 }]).samples)
  const ending = await recorder.end()
  expect(ending).toMatchObject({ type: 'failed', code: 'finalize_timeout' })
  expect(ending.stats.gaps).toEqual([{ startMs: 300, endMs: 800 }])
  expect(engine.running()).toBe(0)
})

test('the last finals may take longer than finalize_ms while the engine makes progress', async () => {
  const engine = createScriptedEngine({ takeMs: 50, pauseMs: 20, hasPartials: false })
  const recorder = await recordEngines({ engines: [engine], settings: { finalizeMs: 300 } })
  const { samples, words } = speak([{ silenceMs: 300, words: 30 }])
  await recorder.write(samples)
  const { type } = await recorder.end()
  expect(type).toBe('ended')
  expect(recorder.words()).toEqual(words.map(({ word }) => word))
})

test('an engine that never answers is lagging, although it emits no event', async () => {
  const engine = createScriptedEngine({ scripts: [{ stallAtMs: 0 }] })
  const settings = { lagMsMax: 500 }
  const recorder = await recordEngines({ engines: [engine], settings, options: { live: true } })
  await recorder.write(speak(sentences).samples.subarray(0, sampleRateHz))
  expect(recorder.warnings()).toEqual([])
  recorder.recognition.checkLag()
  recorder.recognition.checkLag()
  expect(recorder.warnings()).toEqual(['engine_lagging'])
  expect(recorder.recognition.stats().lagMsMax).toBeGreaterThanOrEqual(1_000)
  recorder.recognition.abort()
})

test('a recognition fails after three engines that process nothing', async () => {
  const engine = createScriptedEngine({ scripts: Array(20).fill({ stallAtMs: 0 }) })
  // The next engine has to open within four periods, also on a busy machine.
  const recorder = await recordEngines({ engines: [engine], settings: { engineStallMs: 500 } })
  recorder.recognition.write(speak(sentences).samples.subarray(0, sampleRateHz))
  expect(await recorder.ending()).toMatchObject({ type: 'failed', code: 'engine_stalled' })
  expect(engine.opened()).toBe(3)
})

test('abort by call or signal emits nothing and releases capacity', async () => {
  const engine = createScriptedEngine()
  const controller = new AbortController()
  const called = await recordEngines({ engines: [engine] })
  const signalled = await recordEngines({
    engines: [engine],
    options: { signal: controller.signal },
  })
  const { samples } = speak(sentences)
  called.recognition.write(samples)
  signalled.recognition.write(samples)
  expect(engine.running()).toBe(2)
  expect(called.recognition.abort()).toMatchObject({ receivedMs: 4_800, finals: 0 })
  controller.abort()
  expect(engine.running()).toBe(0)
  const eventsBefore = called.events.length + signalled.events.length
  called.recognition.write(samples)
  called.recognition.finalize('late')
  called.recognition.end()
  const other = await recordEngines({ engines: [engine] })
  await other.write(samples)
  await other.end()
  expect(called.events.length + signalled.events.length).toBe(eventsBefore)
})

test('a recognition does not open without an available engine', async () => {
  const engine = createScriptedEngine({ scripts: [{ refusal: 'unreachable' }] })
  const error = await recordEngines({ engines: [engine] }).catch((reason: EngineError) => reason)
  expect(error).toMatchObject({ name: 'EngineError', kind: 'unreachable' })
})
