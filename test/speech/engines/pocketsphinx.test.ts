import { afterAll, expect, test } from 'bun:test'
import { programEnvironment } from '#config/load.ts'
import type { Engine } from '#speech/engine.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps, openSession, silence } from '#test/support/engine-session.ts'
import { pocketsphinxCommand, pocketsphinxExists } from '#test/support/pocketsphinx/engine.ts'
import {
  type Sentence,
  sentences,
  speechFile,
  speechRateHz,
  speechToolsExist,
} from '#test/support/speech-material.ts'
import { joined, writeAudio } from '#test/support/write-audio.ts'

const isMissing = !(pocketsphinxExists && speechToolsExist)

const engines: Engine[] = []
afterAll(async () => {
  await Promise.all(engines.map((engine) => engine.close()))
})

test.skipIf(isMissing)('a real recogniser transcribes two sentences with word times', async () => {
  const recorder = await openSession(recogniser())
  await writeAudio(recorder, joined(samplesOf('fox'), samplesOf('door')))
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(recorder.finals()).toEqual([sentences.fox, sentences.door])
  const [fox, door] = recorder.of('final')
  expectNear([fox?.startMs, fox?.endMs], [740, 4_460])
  expectNear([door?.startMs, door?.endMs], [6_530, 10_040])
  expect(fox?.words.map(({ word }) => word).join(' ')).toBe(sentences.fox)
  const middle = fox?.words.find(({ word }) => word === 'over')
  expectNear([middle?.startMs, middle?.endMs], [2_670, 2_950])
  for (const { confidence } of fox?.words ?? []) expect(confidence).toBeGreaterThan(0.1)
  expect(recorder.of('partial').length).toBeGreaterThan(10)
  expect(recorder.of('partial').some(({ text }) => text.startsWith('the quick brown'))).toBe(true)
  expect(recorder.of('progress').at(-1)?.processedMs).toBe(11_365)
})

test.skipIf(isMissing)(
  'finalize returns finals before a pause without shifting later times',
  async () => {
    for (const framed of [false, true]) {
      const recorder = await openSession(recogniser({ framed }))
      // Up to where the sentence has just ended, so that no pause has closed it.
      const fox = samplesOf('fox').slice(0, 4.56 * speechRateHz)
      await writeAudio(recorder, fox)
      expect(recorder.finals()).toEqual([])
      recorder.session.finalize()
      await recorder.waitFor('finalized')
      expect(recorder.finals()).toEqual([sentences.fox])

      const rest = joined(silence(5_705 - 4_560, speechRateHz), samplesOf('door'))
      await writeAudio(recorder, rest, { writtenMs: 4_560 })
      recorder.session.end()
      await recorder.waitFor('ended')
      expect(recorder.finals()).toEqual([sentences.fox, sentences.door])
      const [, door] = recorder.of('final')
      expectNear([door?.startMs, door?.endMs], [6_530, 10_040])
    }
  },
)

test.skipIf(isMissing)('concurrent sessions are isolated', async () => {
  const engine = recogniser({ warm: 2 })
  const spoken: Sentence[] = ['fox', 'door']
  const finals = await Promise.all(
    spoken.map(async (sentence) => {
      const recorder = await openSession(engine)
      await writeAudio(recorder, samplesOf(sentence))
      recorder.session.end()
      await recorder.waitFor('ended')
      return recorder.finals()
    }),
  )
  expect(finals).toEqual([[sentences.fox], [sentences.door]])
})

function recogniser({ framed = false, warm = 0 } = {}) {
  const config = engineConfig({
    kind: 'exec',
    name: 'pocketsphinx',
    command: pocketsphinxCommand({ framed }),
    languages: ['en'],
    framed,
    warm,
    openMs: 30_000,
  })
  const engine = createEngine(config, {
    log: engineDeps().log,
    environment: programEnvironment(),
  })
  engines.push(engine)
  return engine
}

function samplesOf(sentence: Sentence): Int16Array {
  const bytes = speechFile(sentence, 'pcm_int16')
  return new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2)
}

/** Within a tenth of a second. */
function expectNear(actual: readonly (number | null | undefined)[], expected: readonly number[]) {
  for (const [at, ms] of expected.entries()) {
    expect(Math.abs((actual[at] ?? Number.NaN) - ms)).toBeLessThanOrEqual(100)
  }
}
