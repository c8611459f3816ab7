import { expect, test } from 'bun:test'
import type { EngineError } from '#speech/engine.ts'
import { eventually } from '#test/support/eventually.ts'
import { hearEngines } from '#test/support/heard-recognition.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { sampleRateHz, speak } from '#test/support/spoken-numbers.ts'

const sentences = [
  { silenceMs: 500, words: 7 },
  { silenceMs: 800, words: 12 },
  { silenceMs: 1_200, words: 4 },
]

test('what is said is told once, in order, with its times, and every millisecond is accounted for', async () => {
  const engine = createScriptedEngine()
  const heard = await hearEngines({ engines: [engine] })
  expect(heard.recognition.engine).toEqual({ name: 'scripted', features: engine.features })
  expect(heard.recognition.sampleRateHz).toBe(sampleRateHz)
  const { samples, words } = speak(sentences, 700)
  await heard.write(samples)
  const { type, stats } = await heard.end()

  expect(type).toBe('ended')
  expect(heard.finals().flatMap((final) => final.words)).toEqual(
    words.map((word) => ({ ...word, confidence: null })),
  )
  expect(heard.finals().map(({ speechFinal }) => speechFinal)).toEqual([true, true, true])
  expect(heard.warnings()).toEqual([])
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

test('speech is told to begin once for each segment, before its first text', async () => {
  const heard = await hearEngines({ engines: [createScriptedEngine()] })
  await heard.write(speak(sentences, 700).samples)
  await heard.end()
  const told = heard.events.filter(({ type }) => type === 'speech-start' || type === 'transcript')
  expect(heard.of('speech-start').map(({ atMs }) => atMs)).toEqual([500, 2_000, 4_400])
  const begins = told.flatMap(({ type }, at) => (type === 'speech-start' ? [told[at + 1]] : []))
  expect(begins).toMatchObject([
    { segment: 1, rev: 1 },
    { segment: 2, rev: 1 },
    { segment: 3, rev: 1 },
  ])
})

test('what nobody asked for is left out', async () => {
  const heard = await hearEngines({
    engines: [createScriptedEngine()],
    options: { partials: false, words: false },
  })
  await heard.write(speak(sentences, 700).samples)
  await heard.end()
  expect(heard.of('transcript')).toHaveLength(3)
  expect(heard.of('transcript').map(({ words }) => words)).toEqual([[], [], []])
})

test('an engine that wavers has its doubts in the text, never in its stable beginning', async () => {
  const heard = await hearEngines({ engines: [createScriptedEngine({ wavers: true })] })
  await heard.write(speak([{ silenceMs: 200, words: 20 }], 400).samples)
  await heard.end()
  const partials = heard.of('transcript').filter(({ isFinal }) => !isFinal)
  expect(partials.some(({ text }) => text.includes('hm'))).toBe(true)
  expect(partials.some(({ stableText }) => stableText.split(' ').length > 10)).toBe(true)
  for (const { stableText } of partials) expect(stableText).not.toContain('hm')
})

test('an engine that takes in nothing gets two seconds, and no more is taken from the client', async () => {
  const engine = createScriptedEngine({ scripts: [{ stallAtMs: 0 }] })
  const { recognition, of } = await hearEngines({ engines: [engine] })
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

test('room is told when an engine gets on, and only after there was none', async () => {
  const heard = await hearEngines({ engines: [createScriptedEngine({ takeMs: 100 })] })
  const { samples } = speak([{ silenceMs: 3_000, words: 10 }], 2_000)
  heard.recognition.write(samples.subarray(0, 1_600))
  await eventually('it took that in', () => heard.recognition.progress().processedMs === 100)
  expect(heard.of('writable')).toEqual([])
  await heard.write(samples.subarray(1_600))
  await heard.end()
  expect(heard.of('writable').length).toBeGreaterThan(0)
})

test('finals can be asked for several times, and each asker is told', async () => {
  const heard = await hearEngines({ engines: [createScriptedEngine({ takeMs: 100 })] })
  const { samples } = speak([{ silenceMs: 400, words: 8 }], 200)
  const cut = (7 * sampleRateHz) / 10
  await heard.write(samples.subarray(0, cut))
  heard.recognition.finalize('a')
  heard.recognition.finalize('b')
  await heard.write(samples.subarray(cut))
  heard.recognition.finalize('c')
  await eventually('all are told', () => heard.of('finalized').length === 3)
  expect(heard.finals().map(({ text, fromFinalize }) => [text, fromFinalize])).toEqual([
    ['1 2 3', 'a'],
    ['4 5 6 7 8', 'c'],
  ])
  expect(heard.of('finalized')).toEqual([
    { type: 'finalized', id: 'a', audioMs: 700 },
    { type: 'finalized', id: 'b', audioMs: 700 },
    { type: 'finalized', id: 'c', audioMs: 1_400 },
  ])
  heard.recognition.finalize('d')
  await heard.end()
  expect(heard.of('finalized').at(-1)).toEqual({ type: 'finalized', id: 'd', audioMs: 1_400 })
})

test('where an engine gives no times, texts lie where speech is heard', async () => {
  const engine = createScriptedEngine({ hasTimes: false })
  const heard = await hearEngines({ engines: [engine] })
  await heard.write(speak(sentences, 700).samples)
  const { stats } = await heard.end()
  expect(heard.finals().map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [500, 1_200],
    [2_000, 3_200],
    [4_400, 4_800],
  ])
  expect(stats.untranscribedMs).toBe(0)
})

test('an engine that leaves words out is found out', async () => {
  const engine = createScriptedEngine({ scripts: [{ muteFromMs: 2_600 }] })
  const heard = await hearEngines({ engines: [engine] })
  await heard.write(speak(sentences, 700).samples)
  const { type, stats } = await heard.end()
  expect(type).toBe('ended')
  expect(stats.gaps).toEqual([
    { startMs: 2_600, endMs: 3_200 },
    { startMs: 4_400, endMs: 4_800 },
  ])
  expect(stats.untranscribedMs).toBe(1_000)
})

test('a live session that falls far behind is told so once', async () => {
  const engine = createScriptedEngine({ takeMs: 100, pauseMs: 5 })
  const settings = { lagMsMax: 500 }
  const live = await hearEngines({ engines: [engine], settings, options: { live: true } })
  await live.write(speak(sentences, 700).samples)
  expect((await live.end()).stats.lagMsMax).toBeGreaterThan(500)
  expect(live.warnings()).toEqual(['engine_lagging'])

  const file = await hearEngines({ engines: [engine], settings })
  await file.write(speak(sentences, 700).samples)
  await file.end()
  expect(file.warnings()).toEqual([])
})

test('last finals that do not come in time end it as a failure that names what is missing', async () => {
  const engine = createScriptedEngine({ scripts: [{ muteFromMs: 0, isEndless: true }] })
  const heard = await hearEngines({ engines: [engine], settings: { finalizeMs: 50 } })
  await heard.write(speak([{ silenceMs: 300, words: 5 }]).samples)
  const ending = await heard.end()
  expect(ending).toMatchObject({ type: 'failed', code: 'finalize_timeout' })
  expect(ending.stats.gaps).toEqual([{ startMs: 300, endMs: 800 }])
  expect(engine.running()).toBe(0)
})

test('an abort is silent, by call or by signal, and gives the place back', async () => {
  const engine = createScriptedEngine()
  const controller = new AbortController()
  const called = await hearEngines({ engines: [engine] })
  const signalled = await hearEngines({
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
  const told = called.events.length + signalled.events.length
  called.recognition.write(samples)
  called.recognition.finalize('late')
  called.recognition.end()
  const other = await hearEngines({ engines: [engine] })
  await other.write(samples)
  await other.end()
  expect(called.events.length + signalled.events.length).toBe(told)
})

test('a session is not opened where no engine can be had', async () => {
  const engine = createScriptedEngine({ scripts: [{ refusal: 'unreachable' }] })
  const error = await hearEngines({ engines: [engine] }).catch((reason: EngineError) => reason)
  expect(error).toMatchObject({ name: 'EngineError', kind: 'unreachable' })
})
