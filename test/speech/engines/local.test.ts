import { afterEach, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import { type Engine, samplesToMs } from '#speech/engine.ts'
import { EnginePool } from '#speech/engines/pool.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps, openSession } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { childrenOf, killProcess } from '#test/support/process.ts'
import { recordPool } from '#test/support/recognition-recorder.ts'
import {
  kennedy,
  kennedyWords,
  lacksWhisper,
  plainWords,
  speechRuntime,
  tinyWhisper,
} from '#test/support/whisper-weights/tiny-whisper.ts'

const rate = 16_000
const engines: Engine[] = []

afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close()))
})

function arrange(given: Partial<EngineConfig> = {}) {
  const deps = { ...engineDeps(), folders: { models: '/nowhere', runtime: speechRuntime } }
  const config = engineConfig({ kind: 'local', model: tinyWhisper, openMs: 60_000, ...given })
  const engine = createEngine(config, deps)
  engines.push(engine)
  return { engine, deps }
}

async function recording(): Promise<Int16Array> {
  const format = { encoding: 'opus', container: 'ogg', sampleRateHz: null, channels: 1 } as const
  const decoder = await openAudioDecoder(format, rate)
  const pieces = [...decoder.decode(await Bun.file(kennedy).bytes()), ...decoder.end()]
  decoder.close()
  return Int16Array.from(pieces.flatMap((piece) => [...piece]))
}

test.skipIf(lacksWhisper)(
  'sessions share one process; each gets partials, words and times',
  async () => {
    const before = new Set(childrenOf(process.pid))
    const { engine } = arrange()
    const samples = await recording()
    const sessions = await Promise.all([openSession(engine), openSession(engine)])
    const own = childrenOf(process.pid).filter((pid) => !before.has(pid))
    expect(own).toHaveLength(1)
    for (const { session } of sessions) session.write(samples.subarray(0, 5 * rate))
    for (const { waitFor } of sessions) await waitFor('partial')
    for (const { session } of sessions) {
      session.write(samples.subarray(5 * rate))
      session.end()
    }
    for (const { waitFor, finals, of } of sessions) {
      await waitFor('ended')
      expect(of('partial')[0]?.text.toLowerCase()).toContain('fellow')
      expect(plainWords(finals().join(' '))).toBe(kennedyWords)
      const words = of('final').flatMap((final) => final.words)
      const starts = words.map(({ startMs }) => startMs)
      expect(starts).toEqual(starts.toSorted((one, other) => one - other))
      // "ask" of "ask what you can do" starts after eight seconds.
      const [, ask] = words.filter(({ word }) => word.toLowerCase() === 'ask')
      expect(Math.abs((ask?.startMs ?? 0) - 8_200)).toBeLessThan(700)
      expect(words.at(-1)?.endMs).toBeLessThanOrEqual(samplesToMs(samples.length, rate))
    }
    expect(childrenOf(process.pid).filter((pid) => !before.has(pid))).toEqual(own)
  },
)

test.skipIf(lacksWhisper)('a recognition outlives the death of the model process', async () => {
  const before = new Set(childrenOf(process.pid))
  const { engine, deps } = arrange()
  const recorder = await recordPool(new EnginePool([engine], deps.log), {})
  const samples = await recording()
  await recorder.write(samples.subarray(0, 4 * rate))
  await eventually('a partial', () => recorder.of('transcript').length > 0)
  for (const pid of childrenOf(process.pid)) if (!before.has(pid)) killProcess(pid)
  await recorder.write(samples.subarray(4 * rate))
  const { type, stats } = await recorder.end()
  expect(type).toBe('ended')
  expect(plainWords(recorder.words().join(' '))).toBe(kennedyWords)
  expect(stats).toMatchObject({ untranscribedMs: 0 })
})

test('a model that is not installed says how to install it', async () => {
  const { engine } = arrange({ model: 'org/missing' })
  await expect(openSession(engine)).rejects.toMatchObject({
    kind: 'unreachable',
    message: expect.stringContaining('bun run speech:install org/missing'),
  })
})
