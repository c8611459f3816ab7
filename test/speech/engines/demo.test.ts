import { expect, test } from 'bun:test'
import { createDemoEngine } from '#speech/engines/demo.ts'
import { engineConfig, openSession, silence, tone } from '#test/support/engine-session.ts'
import { joined } from '#test/support/feed-audio.ts'

const rate = 16_000
const engine = createDemoEngine(engineConfig({ kind: 'demo', name: 'demo' }))
// A sine has half the power of its peak: 3,277 of 32,768 is -20 dB, and 3 dB less.
const loud = (ms: number) => tone(ms, rate, 3_277)
const quiet = (ms: number) => silence(ms, rate)

test('the demo tells when somebody spoke, how long and how loud, and no words', async () => {
  const heard = await openSession(engine)
  heard.session.write(joined(quiet(500), loud(1_240), quiet(760), loud(400), quiet(600)))
  heard.session.end()
  await heard.told('ended')

  expect(engine.features.words).toBe(false)
  expect(heard.of('speech-start').map(({ atMs }) => atMs)).toEqual([500, 2_500])
  expect(heard.of('final')).toEqual([
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
  expect(heard.of('progress').at(-1)).toMatchObject({ processedMs: 3_500, estimated: false })
})

test('partials grow while somebody speaks', async () => {
  const heard = await openSession(engine)
  const spoken = loud(1_000)
  for (let from = 0; from < spoken.length; from += 320) {
    heard.session.write(spoken.slice(from, from + 320))
  }
  await heard.told('progress', 50)
  const ends = heard.of('partial').map(({ endMs }) => endMs)
  expect(ends).toEqual([200, 400, 600, 800, 1_000])
  expect(heard.of('partial')[1]?.text).toBe('[speech 0.40 s, level -23 dBFS]')
  heard.session.abort()
})

test('the same audio says the same, however it is cut', async () => {
  const audio = joined(quiet(330), loud(777), quiet(900), loud(555), quiet(100))
  const finals = await Promise.all(
    [7, 333, 5_000, audio.length].map(async (pieceSamples) => {
      const heard = await openSession(engine)
      for (let from = 0; from < audio.length; from += pieceSamples) {
        heard.session.write(audio.slice(from, from + pieceSamples))
      }
      heard.session.end()
      await heard.told('ended')
      return heard.of('final')
    }),
  )
  expect(finals[0]).toHaveLength(2)
  for (const other of finals) expect(other).toEqual(finals[0] ?? [])
})

test('silence says nothing', async () => {
  const heard = await openSession(engine)
  heard.session.write(quiet(3_000))
  heard.session.finalize()
  heard.session.end()
  await heard.told('ended')
  expect(heard.events.map(({ type }) => type)).toEqual(['progress', 'finalized', 'ended'])
})

test('a finalize closes what is being said, and the rest is speech of its own', async () => {
  const heard = await openSession(engine)
  heard.session.write(loud(800))
  heard.session.finalize()
  heard.session.write(loud(600))
  heard.session.end()
  await heard.told('ended')
  expect(heard.of('final').map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [0, 800],
    [800, 1_400],
  ])
  const order = heard.events.map(({ type }) => type).filter((type) => type.startsWith('final'))
  expect(order).toEqual(['final', 'finalized', 'final'])
})

test('an aborted session says nothing more', async () => {
  const heard = await openSession(engine)
  heard.session.write(loud(800))
  heard.session.abort()
  heard.session.write(loud(800))
  heard.session.end()
  const other = await openSession(engine)
  other.session.end()
  await other.told('ended')
  expect(heard.events).toEqual([])
})
