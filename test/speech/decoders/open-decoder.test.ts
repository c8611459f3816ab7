import { describe, expect, test } from 'bun:test'
import type { AudioFormat } from '#speech/decoders/decoder.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import {
  type SpeechForm,
  speechFile,
  speechToolsExist,
  toolOutput,
} from '#test/support/speech-material.ts'
import { bytesByDice, cutEvery, decodeAll, decodingError, formatOf, joinBytes } from './decoding.ts'
import { readPackets, writeStream } from './ogg-builder.ts'

const opus = { encoding: 'opus' } as const
const ffmpeg = ['ffmpeg', '-v', 'error', '-y', '-i', 'IN']

describe.skipIf(!speechToolsExist)('audio of another encoding is refused and named', () => {
  const files: SpeechForm[] = ['wav', 'ogg', 'webm', 'mp3']
  for (const declared of [...files, 'pcm_int16', 'pcm_float32'] as const) {
    test(`declared as ${declared}`, async () => {
      for (const form of files) {
        const { encoding } = formatOf(form)
        if (encoding === formatOf(declared).encoding) continue
        const bytes = form === 'mp3' ? tagged(speechFile('fox', form)) : speechFile('fox', form)
        for (const parts of [[bytes], cutEvery(bytes.slice(0, 100), 1)]) {
          const error = await decodingError(formatOf(declared), parts)
          expect(error).toMatchObject({ code: 'wrong_encoding', details: { encoding } })
          expect(error.message).toContain(`encoding=${encoding}`)
        }
      }
    })
  }

  test('MP3 without a tag when a container is declared', async () => {
    for (const declared of ['wav', 'ogg'] as const) {
      const error = await decodingError(formatOf(declared), speechFile('fox', 'mp3'))
      expect(error).toMatchObject({ code: 'wrong_encoding', details: { encoding: 'mp3' } })
    }
  })

  test('bare samples declared as WAV', async () => {
    for (const bytes of [speechFile('fox', 'pcm_int16'), Uint8Array.of(1, 2, 3)]) {
      const error = await decodingError({ encoding: 'wav' }, bytes)
      expect(error.code).toBe('wrong_encoding')
      expect(error.message).toContain('pcm_int16')
    }
  })

  test('unsupported containers', async () => {
    const fox = speechFile('fox', 'wav')
    const mp4 = toolOutput([...ffmpeg, '-c:a', 'aac', '-f', 'mp4', 'OUT'], fox)
    const others = [
      mp4,
      toolOutput([...ffmpeg, '-f', 'flac', 'OUT'], fox),
      toolOutput([...ffmpeg, '-f', 'aiff', 'OUT'], fox),
    ]
    for (const bytes of others) {
      for (const declared of ['wav', 'ogg', 'mp3', 'pcm_int16'] as const) {
        expect((await decodingError(formatOf(declared), bytes)).code).toBe('unsupported_container')
      }
    }
    const error = await decodingError(opus, mp4)
    expect(error.details).toMatchObject({ container: 'mp4', hint: expect.any(String) })
    const adts = toolOutput([...ffmpeg, '-f', 'adts', 'OUT'], fox)
    expect((await decodingError({ encoding: 'mp3' }, adts)).code).toBe('unsupported_container')
  })
})

describe.skipIf(!speechToolsExist)('Opus containers are detected or declared', () => {
  const [, , ...packets] = speechToolsExist ? readPackets(speechFile('fox', 'ogg')) : []

  test('Ogg or WebM, declared or detected', async () => {
    for (const container of ['ogg', 'webm'] as const) {
      const auto = await decodeAll(opus, speechFile('fox', container))
      const declared = await decodeAll({ ...opus, container }, speechFile('fox', container))
      expect(declared).toEqual(auto)
    }
  })

  test('another container than declared', async () => {
    for (const [container, form] of [
      ['ogg', 'webm'],
      ['webm', 'ogg'],
      ['raw', 'ogg'],
      ['raw', 'webm'],
    ] as const) {
      const error = await decodingError({ ...opus, container }, speechFile('fox', form))
      expect(error).toMatchObject({ code: 'unsupported_container', details: { container: form } })
    }
  })

  test('raw packets must be declared', async () => {
    for (const container of ['auto', 'ogg', 'webm'] as const) {
      const error = await decodingError({ ...opus, container }, packets)
      expect(error.code).toBe('unsupported_container')
    }
    const error = await decodingError(opus, packets)
    expect(error.message).toContain('container=raw')
    expect(error.details).toEqual({ container: 'raw' })
  })

  test('raw packets decode like those of the container', async () => {
    const fox = await decodeAll(opus, speechFile('fox', 'ogg'))
    const raw = { ...opus, container: 'raw' } as const
    const { samples, faults } = await decodeAll(raw, packets)
    // Raw packets do not state the pre-skip.
    const preSkip = samples.length - packets.length * 320
    expect(preSkip).toBe(0)
    expect(samples.slice(104, 104 + fox.samples.length)).toEqual(Int16Array.from(fox.samples))
    expect(faults.corruptFrames).toBe(0)

    const withEmpty = [new Uint8Array(), ...packets.flatMap((one) => [one, new Uint8Array()])]
    expect((await decodeAll(raw, withEmpty)).samples).toEqual(samples)
  })

  test('an oversized raw packet is refused', async () => {
    const raw = { ...opus, container: 'raw' } as const
    const error = await decodingError(raw, [...packets.slice(0, 3), new Uint8Array(61_441)])
    expect(error.code).toBe('bad_audio')
    expect(error.message).toContain('message')
  })

  test('more than a hundred undecodable raw packets fail', async () => {
    const raw = { ...opus, container: 'raw' } as const
    const bad = Uint8Array.of(0x0e, 255)
    const some = await decodeAll(raw, Array<Uint8Array>(100).fill(bad))
    expect(some.faults.corruptFrames).toBe(100)
    const error = await decodingError(raw, Array<Uint8Array>(101).fill(bad))
    expect(error).toMatchObject({ code: 'bad_audio', details: { corrupt_frames: 101 } })
  })
})

describe('a decoder', () => {
  test('gives no samples without bytes', async () => {
    for (const encoding of ['pcm_int16', 'pcm_float32', 'wav', 'mp3', 'opus'] as const) {
      const format = { encoding, sampleRateHz: 16_000 }
      for (const parts of [[], [new Uint8Array()]]) {
        expect((await decodeAll(format, parts)).samples.length).toBe(0)
      }
    }
  })

  test.skipIf(!speechToolsExist)('can be closed at any time, and twice', async () => {
    for (const form of ['ogg', 'mp3', 'wav'] as const) {
      const format: AudioFormat = {
        container: 'auto',
        sampleRateHz: null,
        channels: 1,
        ...formatOf(form),
      }
      const unused = await openAudioDecoder(format, 16_000)
      unused.close()
      unused.close()
      const used = await openAudioDecoder(format, 16_000)
      expect([...used.decode(speechFile('fox', form).slice(0, 5000))].length).toBeGreaterThan(0)
      used.close()
      used.close()
    }
  })

  test.skipIf(!speechToolsExist)('decodes lazily as pieces are pulled', async () => {
    const pcm = joinBytes(speechFile('fox', 'pcm_float32'), new Uint8Array(4).fill(0xff))
    const packets = readPackets(speechFile('fox', 'ogg'))
    const [head = new Uint8Array(), , ...sound] = packets
    const broken = writeStream({ serial: 1, head, packets: [...sound, Uint8Array.of(0x0e, 255)] })
    for (const [format, bytes, fault] of [
      [formatOf('pcm_float32'), pcm, 'invalidSamples'],
      [formatOf('ogg'), broken, 'corruptFrames'],
      [formatOf('mp3'), joinBytes(speechFile('fox', 'mp3'), bytesByDice(1, 9000)), 'corruptFrames'],
    ] as const) {
      const decoder = await openAudioDecoder(
        { container: 'auto', sampleRateHz: null, channels: 1, ...format },
        16_000,
      )
      const pieces = decoder.decode(bytes)[Symbol.iterator]()
      expect(pieces.next().done).toBe(false)
      // The corrupt end is only decoded when it is pulled.
      expect(decoder.faults[fault]).toBe(0)
      while (!pieces.next().done);
      expect(decoder.faults[fault]).toBeGreaterThan(0)
      decoder.close()
    }
  })
})

function tagged(bytes: Uint8Array): Uint8Array {
  return joinBytes(
    new TextEncoder().encode('ID3'),
    Uint8Array.of(3, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0),
    bytes,
  )
}
