import { describe, expect, test } from 'bun:test'
import { createResampler } from '#lib/resample.ts'
import { createDice } from '#test/support/dice.ts'
import { snrDb, tone } from './decoding.ts'

const pairs = [
  [48_000, 16_000],
  [44_100, 16_000],
  [22_050, 16_000],
  [11_025, 16_000],
  [8000, 16_000],
  [16_000, 24_000],
  [48_000, 44_100],
  [192_000, 8000],
  [44_099, 16_000],
  [15_999, 16_000],
] as const

for (const [fromHz, toHz] of pairs) {
  const nyquistHz = Math.min(fromHz, toHz) / 2

  describe(`from ${fromHz} to ${toHz} Hz`, () => {
    test('a tone in the pass band keeps amplitude and phase', () => {
      for (const part of [0.02, 0.1, 0.5, 0.8, 0.84]) {
        const hz = nyquistHz * part
        const output = settled(resampled(tone(hz, fromHz, fromHz), fromHz, toHz), toHz)
        const wanted = settled(tone(hz, toHz, toHz), toHz)
        expect(snrDb(wanted, output)).toBeGreaterThan(95)
      }
    })

    test.skipIf(fromHz <= toHz * 1.01)(
      'a tone above the lower Nyquist frequency is removed',
      () => {
        for (const part of [1.01, 1.1, 1.3, 1.6, 2.5]) {
          const hz = nyquistHz * part
          if (hz >= fromHz / 2) continue
          const output = settled(resampled(tone(hz, fromHz, fromHz), fromHz, toHz), toHz)
          expect(levelDb(output)).toBeLessThan(-95)
        }
      },
    )

    test('the number of samples matches the duration for any chunking', () => {
      const dice = createDice(fromHz)
      const noise = Float32Array.from({ length: 7001 }, () => dice.upTo(2001) / 1000 - 1)
      const whole = resampled(noise, fromHz, toHz)
      expect(whole.length).toBe(Math.ceil((7001 * toHz) / fromHz))
      for (const partMax of [1, 2, 97, 3000]) {
        expect(resampled(noise, fromHz, toHz, () => 1 + dice.upTo(partMax))).toEqual(whole)
      }
      for (const count of [0, 1, 2, 30]) {
        const few = resampled(noise.subarray(0, count), fromHz, toHz)
        expect(few.length).toBe(Math.ceil((count * toHz) / fromHz))
      }
    })

    test('a constant level is preserved', () => {
      const level = resampled(new Float32Array(fromHz).fill(0.25), fromHz, toHz)
      const far = settled(level, toHz).map((sample) => Math.abs(sample - 0.25))
      expect(Math.max(...far)).toBeLessThan(1e-5)
    })
  })
}

function resampled(
  samples: Float32Array,
  fromHz: number,
  toHz: number,
  partLength: () => number = () => samples.length,
): Float32Array {
  const resampler = createResampler(fromHz, toHz)
  const output: number[] = []
  for (let from = 0; from < samples.length; ) {
    const to = from + partLength()
    output.push(...resampler.push(samples.subarray(from, to)))
    from = to
  }
  output.push(...resampler.flush())
  return Float32Array.from(output)
}

/** Without the first and last 50 ms, where the tone starts and ends abruptly. */
function settled(samples: Float32Array, rateHz: number): Float32Array {
  return samples.slice(rateHz / 20, -rateHz / 20)
}

/** In dB below a tone with amplitude 0.5. */
function levelDb(samples: Float32Array): number {
  const energy = samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length
  return 10 * Math.log10(energy / 0.125)
}
