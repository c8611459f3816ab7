import { afterAll, expect, test } from 'bun:test'
import { programEnvironment } from '#config/load.ts'
import type { Engine } from '#speech/engine.ts'
import { EnginePool } from '#speech/engines/pool.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps } from '#test/support/engine-session.ts'
import { pocketsphinxCommand, pocketsphinxExists } from '#test/support/pocketsphinx/engine.ts'
import { type RecognitionRecorder, recordPool } from '#test/support/recognition-recorder.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import {
  type Sentence,
  sentences,
  speechFile,
  speechToolsExist,
} from '#test/support/speech-material.ts'
import { joined } from '#test/support/write-audio.ts'

const isMissing = !(pocketsphinxExists && speechToolsExist)

const opened: Engine[] = []
afterAll(async () => {
  await Promise.all(opened.map((engine) => engine.close()))
})

test.skipIf(isMissing)('real speech is accounted for to the millisecond', async () => {
  const recorder = await recordReal([recogniser()])
  await recorder.write(speech())
  const { type, stats } = await recorder.end()
  expect(type).toBe('ended')
  expectSentences(recorder)
  expect(stats).toMatchObject({ untranscribedMs: 0, words: 21, finals: 2 })
  expect(recorder.warnings()).toEqual([])
})

test.skipIf(isMissing)(
  'a real engine continues after a failed one, with session times',
  async () => {
    const broken = createScriptedEngine({ name: 'broken', scripts: [{ crashAtMs: 3_000 }] })
    const recorder = await recordReal([broken, recogniser()])
    await recorder.write(speech())
    const { stats } = await recorder.end()
    expectSentences(recorder)
    expect(stats.engine).toEqual({ name: 'pocketsphinx', sessions: 2, rollovers: 1 })
    expect(stats.untranscribedMs).toBe(0)
  },
)

test.skipIf(isMissing)('a real engine is replaced in the pause before its limit', async () => {
  const recorder = await recordReal([recogniser({ sessionMsMax: 6_000 })])
  await recorder.write(speech())
  const { stats } = await recorder.end()
  expectSentences(recorder)
  expect(stats.engine.rollovers).toBeGreaterThan(0)
  expect(recorder.of('warning')[0]?.details).toMatchObject({ reason: 'limit' })
})

function recordReal(engines: readonly Engine[]): Promise<RecognitionRecorder> {
  return recordPool(new EnginePool(engines, engineDeps().log), { options: { endpointingMs: 600 } })
}

function recogniser({ sessionMsMax = 480_000 } = {}): Engine {
  const config = engineConfig({
    kind: 'exec',
    name: 'pocketsphinx',
    command: pocketsphinxCommand({ framed: true }),
    languages: ['en'],
    framed: true,
    openMs: 30_000,
    sessionMsMax,
  })
  const engine = createEngine(config, {
    log: engineDeps().log,
    environment: programEnvironment(),
  })
  opened.push(engine)
  return engine
}

function speech(): Int16Array {
  return joined(samplesOf('fox'), samplesOf('door'))
}

function samplesOf(sentence: Sentence): Int16Array {
  const bytes = speechFile(sentence, 'pcm_int16')
  return new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2)
}

function expectSentences(recorder: RecognitionRecorder): void {
  expect(recorder.finals().map(({ text }) => text)).toEqual([sentences.fox, sentences.door])
  const times = recorder.finals().flatMap(({ startMs, endMs }) => [startMs, endMs])
  for (const [at, ms] of [740, 4_460, 6_530, 10_040].entries()) {
    expect(Math.abs((times[at] ?? Number.NaN) - ms)).toBeLessThanOrEqual(100)
  }
}
