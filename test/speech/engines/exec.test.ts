import { afterEach, expect, test } from 'bun:test'
import { openSession, silence, tone } from '#test/support/engine-session.ts'
import { feedAudio, joined } from '#test/support/feed-audio.ts'
import { closeStubs, stubEngine } from '#test/support/stub-program/engine.ts'

const rate = 16_000
const twoUtterances = joined(
  silence(300, rate),
  tone(1_000, rate),
  silence(700, rate),
  tone(500, rate),
)

afterEach(closeStubs)

test('what a program says becomes partials, finals with word times, progress and an end', async () => {
  const heard = await openSession(stubEngine().engine)
  await feedAudio(heard, twoUtterances)
  heard.session.end()
  await heard.told('ended')

  expect(heard.of('partial')[0]?.text).toBe('utterance 1')
  expect(heard.of('final')).toMatchObject([
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
  expect(heard.of('progress').at(-1)).toMatchObject({ processedMs: 2_500, estimated: false })
  expect(heard.events.at(-1)).toEqual({ type: 'ended' })
})

test('a final asked for with silence leaves the times of what follows where the caller put it', async () => {
  const { engine } = stubEngine()
  const heard = await openSession(engine)
  expect(engine.features.finalize).toBe(false)
  const spoken = tone(1_000, rate)
  for (let times = 1; times <= 3; times += 1) {
    await feedAudio(heard, spoken, { writtenMs: (times - 1) * 1_000 })
    heard.session.finalize()
    await heard.told('finalized', times)
    expect(heard.finals()).toHaveLength(times)
  }
  heard.session.end()
  await heard.told('ended')

  expect(heard.of('final').map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [0, 1_000],
    [1_000, 2_000],
    [2_000, 3_000],
  ])
  expect(heard.of('final').map(({ words }) => words[0]?.endMs)).toEqual([1_000, 2_000, 3_000])
  expect(heard.of('progress').at(-1)?.processedMs).toBe(3_000)
})

test('audio written behind a finalize is not held up and not shifted', async () => {
  const heard = await openSession(stubEngine().engine)
  heard.session.write(tone(600, rate))
  heard.session.finalize()
  heard.session.write(joined(silence(200, rate), tone(600, rate)))
  heard.session.end()
  await heard.told('ended')

  expect(heard.of('final').map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [0, 600],
    [800, 1_400],
  ])
  const order = heard.events.map(({ type }) => type).filter((type) => type.startsWith('final'))
  expect(order).toEqual(['final', 'finalized', 'final'])
})

test('a finalize with nothing to say is answered', async () => {
  const heard = await openSession(stubEngine().engine)
  heard.session.finalize()
  await heard.told('finalized')
  expect(heard.finals()).toEqual([])
})

test('a finalize that the end overtakes is answered before the end', async () => {
  const heard = await openSession(stubEngine({ atEnd: 'exit' }).engine)
  heard.session.write(tone(500, rate))
  heard.session.finalize()
  heard.session.end()
  await heard.told('ended')
  expect(heard.finals()).toEqual(['utterance 1'])
  expect(heard.events.slice(-2).map(({ type }) => type)).toEqual(['finalized', 'ended'])
})

test('a program with frames is told the options and asked for finals without silence', async () => {
  const { engine } = stubEngine({ framed: true })
  const heard = await openSession(engine, {
    language: 'cs',
    vocabulary: ['zmrzlina'],
    endpointingMs: 450,
  })
  expect(engine.features.finalize).toBe(true)
  heard.session.write(tone(700, rate))
  heard.session.finalize()
  heard.session.write(tone(300, rate))
  heard.session.end()
  await heard.told('ended')

  const [options, ...finals] = heard.of('final')
  expect(JSON.parse(options?.text.replace('told ', '') ?? '')).toEqual({
    language: 'cs',
    vocabulary: ['zmrzlina'],
    endpointing_ms: 450,
  })
  expect(finals.map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [0, 700],
    [700, 1_000],
  ])
  expect(heard.of('finalized')).toHaveLength(1)
})

test('a program at another rate is given its samples and tells the same times', async () => {
  const { engine } = stubEngine({ sampleRateHz: 8_000 }, { sampleRateHz: 8_000 })
  const heard = await openSession(engine)
  expect(engine.sampleRateHz).toBe(8_000)
  await feedAudio(heard, joined(silence(500, 8_000), tone(1_000, 8_000)), { sampleRateHz: 8_000 })
  heard.session.end()
  await heard.told('ended')
  expect(heard.of('final')).toMatchObject([{ startMs: 500, endMs: 1_500 }])
})

test('an engine says which languages it serves, and every one where none is named', () => {
  const { engine } = stubEngine({}, { languages: ['sk', 'de'] })
  expect(engine.languages).toEqual(['de', 'sk'])
  expect(stubEngine().engine.languages).toHaveLength(6)
})
