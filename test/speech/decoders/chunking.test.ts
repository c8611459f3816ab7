import { describe, expect, test } from 'bun:test'
import { type SpeechForm, speechFile, speechToolsExist } from '#test/support/speech-material.ts'
import { cutByDice, cutEvery, decodeAll, formatOf, joinBytes } from './decoding.ts'

const forms: SpeechForm[] = ['wav', 'ogg', 'webm', 'mp3', 'pcm_int16', 'pcm_float32']

describe.skipIf(!speechToolsExist)('the samples do not depend on the chunking', () => {
  for (const form of forms) {
    for (const engineRateHz of [16_000, 44_100]) {
      test(`${form} to ${engineRateHz} Hz`, async () => {
        const bytes = speechFile('fox', form)
        const whole = await decodeAll(formatOf(form), bytes, engineRateHz)
        // The whole sentence with the surrounding silence.
        expect(whole.samples.length).toBe(Math.ceil((91_280 * engineRateHz) / 16_000))
        expect(whole.faults).toEqual({
          clippedSamples: 0,
          invalidSamples: 0,
          corruptFrames: 0,
          gaps: 0,
        })
        const cuts = [1, 2, 3, 7, 997].map((count) => cutEvery(bytes, count))
        for (const parts of [...cuts, cutByDice(bytes, 5, 40), cutByDice(bytes, 6, 5000)]) {
          expect(await decodeAll(formatOf(form), parts, engineRateHz)).toEqual(whole)
        }
      })
    }
  }

  for (const form of ['ogg', 'webm', 'mp3'] as const) {
    test(`${form}, concatenated recordings`, async () => {
      const bytes = joinBytes(speechFile('fox', form), speechFile('door', form))
      const whole = await decodeAll(formatOf(form), bytes)
      for (const count of [1, 7, 997]) {
        expect(await decodeAll(formatOf(form), cutEvery(bytes, count))).toEqual(whole)
      }
    })
  }
})
