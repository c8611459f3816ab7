import { describe, expect, test } from 'bun:test'
import { speechFile, speechToolsExist, toolOutput } from '#test/support/speech-material.ts'
import {
  cutEvery,
  decodeAll,
  decodingError,
  int16Bytes,
  joinBytes,
  snrDb,
  tone,
} from './decoding.ts'
import { rf64File, type WavShape, wavFile } from './wav-builder.ts'

const wav = { encoding: 'wav' } as const
const samples = Int16Array.from(tone(440, 16_000, 1600), (sample) => Math.round(sample * 32_768))
const sound = int16Bytes(samples)
const note = { name: 'LIST', content: new Uint8Array(26).fill(0x41) }
const oddNote = { name: 'note', content: new Uint8Array(7).fill(0x42) }

describe('WAV is read with any surrounding chunks', () => {
  const shapes: Record<string, Uint8Array> = {
    plain: wavFile(sound),
    'a list before the format': wavFile(sound, { before: [note] }),
    'chunks of odd length, with their padding': wavFile(sound, { before: [oddNote, note] }),
    'a size of 0': wavFile(sound, { dataSize: 0, riffSize: 0 }),
    'a size that was not known': wavFile(sound, { dataSize: 0xffffffff, riffSize: 0xffffffff }),
    'chunks after the sound': wavFile(sound, { after: [note, oddNote, note] }),
    'an extensible format': wavFile(sound, { extensible: true }),
    'sizes of 64 bits': rf64File(sound, BigInt(sound.length), { after: [note] }),
    'an unknown size of 64 bits': rf64File(sound, 0n),
  }
  for (const [name, bytes] of Object.entries(shapes)) {
    test(name, async () => {
      for (const count of [bytes.length, 1, 2, 3, 7, 997]) {
        const decoded = await decodeAll(wav, cutEvery(bytes, count))
        expect(decoded.samples).toEqual(samples)
      }
    })
  }

  test('many chunks between format and audio', async () => {
    const listed = wavFile(sound)
    const extra = wavFile(new Uint8Array(), { before: [note, oddNote, note] }).slice(12, -32)
    const bytes = joinBytes(listed.slice(0, 36), extra, listed.slice(36))
    expect((await decodeAll(wav, bytes)).samples).toEqual(samples)
  })
})

describe('every sample width is supported', () => {
  const widths: [string, WavShape, (view: DataView, at: number, value: number) => void][] = [
    ['8 bits', { bits: 8 }, (view, at, value) => view.setUint8(at, Math.round(value * 128) + 128)],
    ['24 bits', { bits: 24 }, setInt24],
    ['20 bits in 24', { bits: 20, extensible: true }, setInt24],
    ['32 bits', { bits: 32 }, (view, at, value) => view.setInt32(at * 4, value * 2 ** 31, true)],
    ['floats', { bits: 32, format: 3 }, (view, at, value) => view.setFloat32(at * 4, value, true)],
    [
      'extensible floats',
      { bits: 32, format: 3, extensible: true },
      (view, at, value) => view.setFloat32(at * 4, value, true),
    ],
    ['doubles', { bits: 64, format: 3 }, (view, at, value) => view.setFloat64(at * 8, value, true)],
  ]
  for (const [name, shape, set] of widths) {
    test(name, async () => {
      const view = new DataView(new ArrayBuffer(1600 * Math.ceil((shape.bits ?? 0) / 8)))
      for (const [at, value] of tone(440, 16_000, 1600).entries()) set(view, at, value)
      const bytes = wavFile(new Uint8Array(view.buffer), shape)
      const decoded = await decodeAll(wav, cutEvery(bytes, 7))
      expect(decoded.samples.length).toBe(1600)
      expect(snrDb(samples, decoded.samples)).toBeGreaterThan(shape.bits === 8 ? 40 : 75)
    })
  }

  test('channels are averaged', async () => {
    for (const channels of [2, 5]) {
      const frames = Array.from(samples).flatMap((sample) =>
        Array.from({ length: channels }, (_, channel) => (channel === 1 ? sample : 0)),
      )
      const decoded = await decodeAll(wav, wavFile(int16Bytes(frames), { channels }))
      const mean = Int16Array.from(samples, (sample) => Math.round(sample / channels))
      expect(snrDb(mean, decoded.samples)).toBeGreaterThan(60)
    }
  })

  test.skipIf(!speechToolsExist)('A-law and mu-law', async () => {
    for (const [codec, format] of [
      ['a-law', 6],
      ['mu-law', 7],
    ] as const) {
      const original = speechFile('fox', 'wav')
      const bytes = toolOutput(
        ['sox', '-R', '-t', 'wav', 'IN', '-t', 'wav', '-e', codec, 'OUT'],
        original,
      )
      expect(bytes[20]).toBe(format)
      const back = toolOutput(
        ['sox', '-R', '-t', 'wav', 'IN', '-t', 'wav', '-e', 'signed', '-b', '16', 'OUT'],
        bytes,
      )
      const decoded = await decodeAll(wav, bytes)
      expect(decoded.samples).toEqual((await decodeAll(wav, back)).samples)
    }
  })

  test.skipIf(!speechToolsExist)('output of ffmpeg to a pipe', async () => {
    const piped = ['-f', 'wav', '-bitexact', 'pipe:1']
    const command = `ffmpeg -v error -i "$0" ${piped.join(' ')} > "$1"`
    const bytes = toolOutput(['sh', '-c', command, 'IN', 'OUT'], speechFile('fox', 'wav'))
    const direct = await decodeAll(wav, speechFile('fox', 'wav'))
    expect((await decodeAll(wav, bytes)).samples).toEqual(direct.samples)
  })
})

describe('an unsupported WAV is refused with a reason', () => {
  test('other codecs', async () => {
    for (const format of [2, 0x11, 0x55]) {
      const error = await decodingError(wav, wavFile(sound, { format }))
      expect(error).toMatchObject({ code: 'unsupported_audio', details: { format } })
    }
  })

  test('unsupported widths, rates and channels', async () => {
    const shapes: WavShape[] = [
      { bits: 64 },
      { bits: 0 },
      { bits: 16, format: 3 },
      { channels: 33 },
      { rateHz: 100 },
      { rateHz: 4_000_000_000 },
    ]
    for (const shape of shapes) {
      expect((await decodingError(wav, wavFile(sound, shape))).code).toBe('unsupported_audio')
    }
  })

  test('a damaged header', async () => {
    const noFormat = joinBytes(wavFile(sound).slice(0, 12), wavFile(sound).slice(36))
    const endless = wavFile(sound, { before: [{ name: 'junk', content: new Uint8Array(2 ** 20) }] })
    const longFormat = wavFile(sound).fill(0xff, 16, 20)
    for (const bytes of [noFormat, endless, longFormat, wavFile(sound, { channels: 0 })]) {
      expect((await decodingError(wav, bytes)).code).toBe('bad_audio')
    }
  })

  test('a header truncated anywhere', async () => {
    const bytes = wavFile(sound, { before: [note], extensible: true })
    const headerBytes = bytes.length - sound.length
    for (let length = 12; length < headerBytes; length++) {
      expect((await decodingError(wav, bytes.slice(0, length))).code).toBe('bad_audio')
    }
    expect((await decodeAll(wav, bytes.slice(0, headerBytes))).samples.length).toBe(0)
    expect((await decodeAll(wav, bytes.slice(0, headerBytes + 9))).samples.length).toBe(4)
    expect((await decodeAll(wav, new Uint8Array())).samples.length).toBe(0)
  })
})

function setInt24(view: DataView, at: number, value: number) {
  const whole = Math.round(value * 2 ** 23)
  view.setUint16(at * 3, whole & 0xffff, true)
  view.setInt8(at * 3 + 2, whole >> 16)
}
