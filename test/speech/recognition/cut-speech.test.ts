import { expect, test } from 'bun:test'
import { EnginePool } from '#speech/engines/pool.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps } from '#test/support/engine-session.ts'
import { recordPool } from '#test/support/recognition-recorder.ts'

const rateHz = 16_000
const stepMs = 10

test('wherever a caller pauses and stops within speech, no detected sound is left without a final', async () => {
  const voice = syllables(1_000)
  const demo = createEngine(engineConfig({ kind: 'demo', name: 'demo' }), engineDeps())
  const pool = new EnginePool([demo], engineDeps().log)
  const omitted: string[] = []
  for (let pauseMs = 0; pauseMs <= 1_000; pauseMs += stepMs * 5) {
    for (let heardMs = stepMs; heardMs <= 400; heardMs += stepMs * 3) {
      const recorder = await recordPool(pool, {})
      const cut = (pauseMs * rateHz) / 1_000
      recorder.recognition.write(voice.subarray(0, cut))
      recorder.recognition.finalize('pause')
      recorder.recognition.write(voice.subarray(cut, cut + (heardMs * rateHz) / 1_000))
      const { stats } = await recorder.end()
      if (stats.untranscribedMs > 0) omitted.push(`${pauseMs}+${heardMs}: ${stats.untranscribedMs}`)
    }
  }
  expect(omitted).toEqual([])
})

/** Four syllables a second, as of the recording that the browser tests play. */
function syllables(ms: number): Int16Array {
  return Int16Array.from({ length: ms * 16 }, (_, index) => {
    const second = index / rateHz
    const level = 0.5 - 0.5 * Math.cos(2 * Math.PI * 4 * second)
    const voice = [150, 300, 450, 900, 1_350].reduce(
      (sum, hz) => sum + Math.sin(2 * Math.PI * hz * second),
      0,
    )
    return Math.round(4_000 * level * voice)
  })
}
