import { describe, expect, test } from 'bun:test'
import { cutEvery, decodeAll, decodingError, int16Bytes, snrDb, tone } from './decoding.ts'

const int16 = { encoding: 'pcm_int16', sampleRateHz: 16_000 } as const
const float32 = { encoding: 'pcm_float32', sampleRateHz: 16_000 } as const

describe('bare samples', () => {
  test('of 16 bit at the engine rate are unchanged', async () => {
    const all = Int16Array.from({ length: 65_536 }, (_, at) => at - 32_768)
    const decoded = await decodeAll(int16, cutEvery(int16Bytes(all), 1001))
    expect(decoded.samples).toEqual(all)
    expect(decoded.faults.clippedSamples).toBe(0)
  })

  test('of floats are clamped, and faults counted', async () => {
    const values = [0, 0.5, -1, 1, 1.5, -7, 1e38, Number.NaN, Number.POSITIVE_INFINITY, -0.25]
    const bytes = new Uint8Array(Float32Array.from(values).buffer)
    for (const count of [1, 3, bytes.length]) {
      const { samples, faults } = await decodeAll(float32, cutEvery(bytes, count))
      expect([...samples]).toEqual([
        0, 16_384, -32_768, 32_767, 32_767, -32_768, 32_767, 0, 0, -8192,
      ])
      expect(faults).toMatchObject({ clippedSamples: 3, invalidSamples: 2 })
    }
  })

  test('that overshoot in resampling are clipped and counted', async () => {
    // A square wave overshoots at its edges when resampled.
    const square = Int16Array.from({ length: 8000 }, (_, at) => (at % 40 < 20 ? 32_767 : -32_768))
    const { samples, faults } = await decodeAll(
      { ...int16, sampleRateHz: 8000 },
      int16Bytes(square),
    )
    expect(samples.length).toBe(16_000)
    expect(faults.clippedSamples).toBeGreaterThan(100)
  })

  test('of two channels are averaged', async () => {
    const pairs = [100, 300, -32_768, 32_767, 7, 8]
    const { samples } = await decodeAll({ ...int16, channels: 2 }, cutEvery(int16Bytes(pairs), 3))
    expect([...samples].map((sample) => Math.abs(sample))).toEqual([200, 0, 8])
    const floats = Float32Array.from([0.5, 0.25, -1, 1])
    const decoded = await decodeAll({ ...float32, channels: 2 }, new Uint8Array(floats.buffer))
    expect([...decoded.samples]).toEqual([12_288, 0])
  })

  test('drop only an incomplete last sample', async () => {
    const { samples } = await decodeAll(int16, int16Bytes([1, 2, 3]).slice(0, 5))
    expect([...samples]).toEqual([1, 2])
  })

  test('are accepted at unusual rates', async () => {
    for (const sampleRateHz of [4000, 11_025, 15_999, 44_099, 192_000]) {
      const source = tone(300, sampleRateHz, sampleRateHz)
      const decoded = await decodeAll({ ...float32, sampleRateHz }, new Uint8Array(source.buffer))
      const wanted = tone(300, 16_000, 16_000).map((sample) => sample * 32_768)
      expect(decoded.samples.length).toBe(16_000)
      // The tone starts and ends abruptly, which a filter cannot follow.
      expect(snrDb(wanted.slice(800, -800), decoded.samples.slice(800, -800))).toBeGreaterThan(80)
    }
  })

  test('are refused at unsupported rates', async () => {
    for (const sampleRateHz of [0, 1, 3999, 192_001, Number.NaN]) {
      const error = await decodingError({ ...int16, sampleRateHz }, new Uint8Array())
      expect(error.code).toBe('unsupported_audio')
    }
  })
})
