import { describe, expect, test } from 'bun:test'
import { AudioError, type AudioFormat } from '#speech/decoders/decoder.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import { createDice } from '#test/support/dice.ts'
import { type SpeechForm, speechFile, speechToolsExist } from '#test/support/speech-material.ts'
import { bytesByDice, cutByDice, cutEvery, formatOf, joinBytes } from './decoding.ts'
import { wavFile } from './wav-builder.ts'

const forms: SpeechForm[] = ['wav', 'ogg', 'webm', 'mp3', 'pcm_int16', 'pcm_float32']

/** Valid starts of each format. */
const beginnings: Record<SpeechForm, Uint8Array> = {
  wav: wavFile(new Uint8Array()).slice(0, 12),
  ogg: new TextEncoder().encode('OggS\0\u0002'),
  webm: Uint8Array.of(0x1a, 0x45, 0xdf, 0xa3),
  mp3: Uint8Array.of(0xff, 0xfb, 0x90, 0),
  pcm_int16: new Uint8Array(),
  pcm_float32: new Uint8Array(),
}

describe('arbitrary bytes give samples or an AudioError, at a cost proportional to their length', () => {
  for (const form of forms) {
    test(`noise as ${form}`, async () => {
      for (let seed = 1; seed <= 30; seed++) {
        const noise = bytesByDice(seed, seed * 200)
        await survive(form, [beginnings[form], noise])
        await survive(form, cutByDice(joinBytes(beginnings[form], noise), seed, 200))
      }
    })
  }

  test('noise as raw Opus packets', async () => {
    for (let seed = 1; seed <= 30; seed++) {
      await survive('ogg', cutByDice(bytesByDice(seed, 9000), seed, 400), 'raw')
    }
  })

  for (const form of forms.slice(0, 4)) {
    test.skipIf(!speechToolsExist)(
      `${form} that ends too early, at many places of its start`,
      async () => {
        const file = speechFile('fox', form)
        for (let length = 0; length < 400; length += length < 64 ? 1 : 7) {
          await survive(form, [file.subarray(0, length)])
        }
      },
    )

    test.skipIf(!speechToolsExist)(`${form} with flipped bits`, async () => {
      const file = speechFile('fox', form).slice(0, 4000)
      const dice = createDice(17)
      for (let round = 0; round < 100; round++) {
        const broken = file.slice()
        // The start of a file determines most of its interpretation.
        const reach = round % 2 === 0 ? 300 : broken.length
        for (let flips = 1 + dice.upTo(12); flips > 0; flips--) {
          const at = dice.upTo(reach)
          broken[at] = (broken[at] ?? 0) ^ (1 << dice.upTo(8))
        }
        await survive(form, [broken])
      }
    })

    test.skipIf(!speechToolsExist)(
      `${form} with pieces removed, repeated and reordered`,
      async () => {
        const file = speechFile('fox', form).slice(0, 12_000)
        const dice = createDice(23)
        for (let round = 0; round < 50; round++) {
          const parts = cutEvery(file, 50 + dice.upTo(1000))
          const mixed = parts.flatMap((part) => {
            const fate = dice.upTo(8)
            return fate === 0 ? [] : fate === 1 ? [part, part] : [part]
          })
          await survive(form, [file.subarray(0, 40), ...mixed])
        }
      },
    )
  }
})

/** The minimum bytes per second of audio in the most efficient encoding. */
const bytesPerSecondMin = 40

async function survive(
  form: SpeechForm,
  parts: readonly Uint8Array[],
  container: AudioFormat['container'] = 'auto',
) {
  const format = { sampleRateHz: null, channels: 1, ...formatOf(form), container } as const
  const decoder = await openAudioDecoder(format, 16_000)
  let bytes = 0
  let samples = 0
  try {
    for (const part of parts) {
      bytes += part.length
      for (const piece of decoder.decode(part)) samples += piece.length
    }
    for (const piece of decoder.end()) samples += piece.length
  } catch (error) {
    if (!(error instanceof AudioError)) throw error
  } finally {
    decoder.close()
  }
  expect(samples).toBeLessThanOrEqual(16_000 * (1 + bytes / bytesPerSecondMin))
}
