import { afterEach, expect, test } from 'bun:test'
import { openSession, silence, tone } from '#test/support/engine-session.ts'
import { closeStubs, stubEngine } from '#test/support/stub-program/engine.ts'
import { joined, writeAudio } from '#test/support/write-audio.ts'

const rate = 16_000
const twoUtterances = joined(
  silence(300, rate),
  tone(1_000, rate),
  silence(700, rate),
  tone(500, rate),
)

afterEach(closeStubs)

test('program output becomes partials, finals with word times, progress and an ending', async () => {
  const recorder = await openSession(stubEngine().engine)
  await writeAudio(recorder, twoUtterances)
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(recorder.of('partial')[0]?.text).toBe('utterance 1')
  expect(recorder.of('final')).toMatchObject([
    {
      text: 'utterance 1',
      startMs: 300,
      endMs: 1_300,
      confidence: 0.5,
      speechFinal: true,
      words: [{ word: 'utterance-1', startMs: 300, endMs: 1_300, confidence: 0.5 }],
    },
    { text: 'utterance 2', startMs: 2_000, endMs: 2_500 },
  ])
  expect(recorder.of('progress').at(-1)).toMatchObject({ processedMs: 2_500, estimated: false })
  expect(recorder.events.at(-1)).toEqual({ type: 'ended' })
})

test.each(['', 'partials', 'words confidence', 'partials words confidence'])(
  'a program that declares "%s" is passed on with nothing else',
  async (declared) => {
    const has = (name: string) => declared.split(' ').includes(name)
    const [partials, words, confidence] = [has('partials'), has('words'), has('confidence')]
    const features = declared.split(' ').filter((name) => name !== '')
    const { engine } = stubEngine({}, { features })
    expect(engine.features).toEqual({ partials, words, confidence, finalize: false })
    const recorder = await openSession(engine)
    await writeAudio(recorder, twoUtterances)
    recorder.session.finalize()
    await recorder.waitFor('finalized')
    recorder.session.end()
    await recorder.waitFor('ended')
    const finals = recorder.of('final')
    expect(finals.map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
      [300, 1_300],
      [2_000, 2_500],
    ])
    expect(recorder.of('partial').length > 0).toBe(partials)
    for (const final of finals) {
      expect(final.words.length > 0).toBe(words)
      expect(final.confidence !== null).toBe(confidence)
    }
  },
)

test('finalize by inserted silence does not shift the times of later audio', async () => {
  const { engine } = stubEngine()
  const recorder = await openSession(engine)
  expect(engine.features.finalize).toBe(false)
  const spoken = tone(1_000, rate)
  for (let times = 1; times <= 3; times += 1) {
    await writeAudio(recorder, spoken, { writtenMs: (times - 1) * 1_000 })
    recorder.session.finalize()
    await recorder.waitFor('finalized', times)
    expect(recorder.finals()).toHaveLength(times)
  }
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(recorder.of('final').map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [0, 1_000],
    [1_000, 2_000],
    [2_000, 3_000],
  ])
  expect(recorder.of('final').map(({ words }) => words[0]?.endMs)).toEqual([1_000, 2_000, 3_000])
  expect(recorder.of('progress').at(-1)?.processedMs).toBe(3_000)
})

test('audio after a finalize is neither delayed nor shifted', async () => {
  const recorder = await openSession(stubEngine().engine)
  recorder.session.write(tone(600, rate))
  recorder.session.finalize()
  recorder.session.write(joined(silence(200, rate), tone(600, rate)))
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(recorder.of('final').map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [0, 600],
    [800, 1_400],
  ])
  const order = recorder.events.map(({ type }) => type).filter((type) => type.startsWith('final'))
  expect(order).toEqual(['final', 'finalized', 'final'])
})

test('a finalize without speech is answered', async () => {
  const recorder = await openSession(stubEngine().engine)
  recorder.session.finalize()
  await recorder.waitFor('finalized')
  expect(recorder.finals()).toEqual([])
})

test('an outstanding finalize is answered before the end', async () => {
  const recorder = await openSession(stubEngine({ atEnd: 'exit' }).engine)
  recorder.session.write(tone(500, rate))
  recorder.session.finalize()
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(recorder.finals()).toEqual(['utterance 1'])
  expect(recorder.events.slice(-2).map(({ type }) => type)).toEqual(['finalized', 'ended'])
})

test('a framed program receives the options and finalize frames', async () => {
  const { engine } = stubEngine({ framed: true })
  const recorder = await openSession(engine, {
    language: 'cs',
    vocabulary: ['zmrzlina'],
    endpointingMs: 450,
  })
  expect(engine.features.finalize).toBe(true)
  recorder.session.write(tone(700, rate))
  recorder.session.finalize()
  recorder.session.write(tone(300, rate))
  recorder.session.end()
  await recorder.waitFor('ended')

  const [options, ...finals] = recorder.of('final')
  expect(JSON.parse(options?.text.replace('options ', '') ?? '')).toEqual({
    language: 'cs',
    vocabulary: ['zmrzlina'],
    endpointing_ms: 450,
  })
  expect(finals.map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [0, 700],
    [700, 1_000],
  ])
  expect(recorder.of('finalized')).toHaveLength(1)
})

test('a program with another sample rate returns the same times', async () => {
  const { engine } = stubEngine({ sampleRateHz: 8_000 }, { sampleRateHz: 8_000 })
  const recorder = await openSession(engine)
  expect(engine.sampleRateHz).toBe(8_000)
  await writeAudio(recorder, joined(silence(500, 8_000), tone(1_000, 8_000)), {
    sampleRateHz: 8_000,
  })
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(recorder.of('final')).toMatchObject([{ startMs: 500, endMs: 1_500 }])
})

test('an engine serves the configured languages, or all if none is configured', () => {
  const { engine } = stubEngine({}, { languages: ['sk', 'de'] })
  expect(engine.languages).toEqual(['de', 'sk'])
  expect(stubEngine().engine.languages).toHaveLength(6)
})
