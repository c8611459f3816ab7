import { afterAll, expect, test } from 'bun:test'
import { programEnvironment } from '#config/load.ts'
import type { Engine } from '#speech/engine.ts'
import { createExecEngine } from '#speech/engines/exec/engine.ts'
import { poolEngines } from '#speech/engines/pool.ts'
import { engineConfig, engineDeps } from '#test/support/engine-session.ts'
import { joined } from '#test/support/feed-audio.ts'
import { type HeardRecognition, hearPool } from '#test/support/heard-recognition.ts'
import { pocketsphinxCommand, pocketsphinxExists } from '#test/support/pocketsphinx/engine.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import {
  type Sentence,
  sentences,
  speechFile,
  speechToolsExist,
} from '#test/support/speech-material.ts'

const isMissing = !(pocketsphinxExists && speechToolsExist)
const testMs = 60_000

const engines: Engine[] = []
afterAll(async () => {
  await Promise.all(engines.map((engine) => engine.close()))
})

test.skipIf(isMissing)(
  'real speech is accounted for to the millisecond',
  async () => {
    const heard = await hear([recogniser()])
    await heard.write(speech())
    const { type, stats } = await heard.end()
    expect(type).toBe('ended')
    expectSentences(heard)
    expect(stats).toMatchObject({ untranscribedMs: 0, words: 21, finals: 2 })
    expect(heard.warnings()).toEqual([])
  },
  testMs,
)

test.skipIf(isMissing)(
  'a real engine takes over from one that broke off, and its times are those of the session',
  async () => {
    const broken = createScriptedEngine({ name: 'broken', scripts: [{ crashAtMs: 3_000 }] })
    const heard = await hear([broken, recogniser()])
    await heard.write(speech())
    const { stats } = await heard.end()
    expectSentences(heard)
    expect(stats.engine).toEqual({ name: 'pocketsphinx', sessions: 2, rollovers: 1 })
    expect(stats.untranscribedMs).toBe(0)
  },
  testMs,
)

test.skipIf(isMissing)(
  'a real engine is left in the pause before its limit, and the next one goes on',
  async () => {
    const heard = await hear([recogniser({ sessionMsMax: 6_000 })])
    await heard.write(speech())
    const { stats } = await heard.end()
    expectSentences(heard)
    expect(stats.engine.rollovers).toBeGreaterThan(0)
    expect(heard.of('warning')[0]?.details).toMatchObject({ reason: 'limit' })
  },
  testMs,
)

function hear(given: readonly Engine[]): Promise<HeardRecognition> {
  return hearPool(poolEngines(given, engineDeps().log), { options: { endpointingMs: 600 } })
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
  const engine = createExecEngine(config, {
    log: engineDeps().log,
    environment: programEnvironment(),
  })
  engines.push(engine)
  return engine
}

function speech(): Int16Array {
  return joined(samplesOf('fox'), samplesOf('door'))
}

function samplesOf(sentence: Sentence): Int16Array {
  const bytes = speechFile(sentence, 'pcm_int16')
  return new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2)
}

function expectSentences(heard: HeardRecognition): void {
  expect(heard.finals().map(({ text }) => text)).toEqual([sentences.fox, sentences.door])
  const told = heard.finals().flatMap(({ startMs, endMs }) => [startMs, endMs])
  for (const [at, ms] of [740, 4_460, 6_530, 10_040].entries()) {
    expect(Math.abs((told[at] ?? Number.NaN) - ms)).toBeLessThanOrEqual(100)
  }
}
