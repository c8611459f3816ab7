import { expect, test } from 'bun:test'
import { join } from 'node:path'

type Processor = {
  port: { onmessage: (event: { data: string }) => void; postMessage(data: unknown): void }
  process(inputs: readonly Float32Array[][]): boolean
}

const worklet = join(import.meta.dir, '../../console/src/pages/speech/capture-worklet.js')

test('all audio from before a pause is delivered before the pause is confirmed, and none from within', async () => {
  const { processor, delivered } = await startCapture()
  const hear = (level: number, quanta: number) => {
    for (let at = 0; at < quanta; at++) processor.process([[new Float32Array(128).fill(level)]])
  }
  hear(0.25, 10)
  processor.port.onmessage({ data: 'pause' })
  hear(0.5, 10)
  processor.port.onmessage({ data: 'resume' })
  hear(0.75, 7)
  processor.port.onmessage({ data: 'pause' })
  expect(
    delivered.map((samples) => samples && [samples.length, samples[0], samples.at(-1)]),
  ).toEqual([
    [800, 8_192, 8_192],
    [480, 8_192, 8_192],
    null,
    [800, 24_575, 24_575],
    [96, 24_575, 24_575],
    null,
  ])
})

/** The script of the audio thread, outside of a browser. */
async function startCapture() {
  const delivered: (Int16Array | null)[] = []
  let kind: (new () => Processor) | undefined
  Object.assign(globalThis, {
    sampleRate: 16_000,
    AudioWorkletProcessor: class {
      port = { onmessage: () => {}, postMessage: (data: Int16Array | null) => delivered.push(data) }
    },
    registerProcessor: (_name: string, given: new () => Processor) => {
      kind = given
    },
  })
  await import(worklet)
  if (kind === undefined) throw new Error('the script registered no processor')
  return { processor: new kind(), delivered }
}
