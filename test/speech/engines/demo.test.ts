import { expect, test } from 'bun:test'
import { createEngine } from '#speech/engines/registry.ts'
import {
  engineConfig,
  engineDeps,
  openSession,
  silence,
  tone,
} from '#test/support/engine-session.ts'
import { joined } from '#test/support/write-audio.ts'

const rate = 16_000
const engine = createEngine(engineConfig({ kind: 'demo', name: 'demo' }), engineDeps())
// A sine has half the power of its peak: 3,277 of 32,768 is -20 dB, minus 3 dB.
const loud = (ms: number) => tone(ms, rate, 3_277)
const quiet = (ms: number) => silence(ms, rate)

test('the demo reports when speech occurred, how long and how loud, without words', async () => {
  const recorder = await openSession(engine)
  recorder.session.write(joined(quiet(500), loud(1_240), quiet(760), loud(400), quiet(600)))
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(engine.features.words).toBe(false)
  expect(recorder.of('speech-start').map(({ atMs }) => atMs)).toEqual([500, 2_500])
  expect(recorder.of('final')).toEqual([
    {
      type: 'final',
      text: '[speech 1.24 s, level -23 dBFS]',
      startMs: 500,
      endMs: 1_740,
      words: [],
      confidence: null,
      speechFinal: true,
    },
    expect.objectContaining({ text: '[speech 0.40 s, level -23 dBFS]', startMs: 2_500 }),
  ])
  expect(recorder.of('progress').at(-1)).toMatchObject({ processedMs: 3_500, estimated: false })
})

test('partials grow during speech', async () => {
  const recorder = await openSession(engine)
  const spoken = loud(1_000)
  for (let from = 0; from < spoken.length; from += 320) {
    recorder.session.write(spoken.slice(from, from + 320))
  }
  await recorder.waitFor('progress', 50)
  const ends = recorder.of('partial').map(({ endMs }) => endMs)
  expect(ends).toEqual([200, 400, 600, 800, 1_000])
  expect(recorder.of('partial')[1]?.text).toBe('[speech 0.40 s, level -23 dBFS]')
  recorder.session.abort()
})

test('the same audio gives the same results for any chunking', async () => {
  const audio = joined(quiet(330), loud(777), quiet(900), loud(555), quiet(100))
  const finals = await Promise.all(
    [7, 333, 5_000, audio.length].map(async (pieceSamples) => {
      const recorder = await openSession(engine)
      for (let from = 0; from < audio.length; from += pieceSamples) {
        recorder.session.write(audio.slice(from, from + pieceSamples))
      }
      recorder.session.end()
      await recorder.waitFor('ended')
      return recorder.of('final')
    }),
  )
  expect(finals[0]).toHaveLength(2)
  for (const other of finals) expect(other).toEqual(finals[0] ?? [])
})

test('silence gives no text', async () => {
  const recorder = await openSession(engine)
  recorder.session.write(quiet(3_000))
  recorder.session.finalize()
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(recorder.events.map(({ type }) => type)).toEqual(['progress', 'finalized', 'ended'])
})

test('finalize ends the utterance; later speech is a new one', async () => {
  const recorder = await openSession(engine)
  recorder.session.write(loud(800))
  recorder.session.finalize()
  recorder.session.write(loud(600))
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(recorder.of('final').map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [0, 800],
    [800, 1_400],
  ])
  const order = recorder.events.map(({ type }) => type).filter((type) => type.startsWith('final'))
  expect(order).toEqual(['final', 'finalized', 'final'])
})

test('an aborted session emits nothing more', async () => {
  const recorder = await openSession(engine)
  recorder.session.write(loud(800))
  recorder.session.abort()
  recorder.session.write(loud(800))
  recorder.session.end()
  const other = await openSession(engine)
  other.session.end()
  await other.waitFor('ended')
  expect(recorder.events).toEqual([])
})
