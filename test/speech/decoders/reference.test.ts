import { describe, expect, test } from 'bun:test'
import { speechFile, speechToolsExist, toolOutput } from '#test/support/speech-material.ts'
import { decodeAll, int16Samples, snrDb } from './decoding.ts'

const bare = ['-f', 's16le', 'OUT']
const ffmpeg = ['ffmpeg', '-v', 'error', '-y', '-i', 'IN']
/** ffmpeg's own Opus decoder differs inaudibly from the reference. */
const ffmpegOpus = ['ffmpeg', '-v', 'error', '-y', '-c:a', 'libopus', '-i', 'IN']

describe.skipIf(!speechToolsExist)('decoded audio matches reference decoders', () => {
  test('MP3 at its own rate', async () => {
    const bytes = speechFile('fox', 'mp3')
    const { samples } = await decodeAll({ encoding: 'mp3' }, bytes, 32_000)
    const reference = int16Samples(toolOutput([...ffmpeg, ...bare], bytes))
    expect(samples.length).toBe(reference.length)
    expect(snrDb(reference, samples)).toBeGreaterThan(60)
  })

  test('stereo MP3, mixed to mono', async () => {
    const stereo = toolOutput([...ffmpeg, ...panned, '-b:a', '128k', '-f', 'mp3', 'OUT'], fox())
    const { samples } = await decodeAll({ encoding: 'mp3' }, stereo, 44_100)
    const reference = meanOfPairs(int16Samples(toolOutput([...ffmpeg, ...bare], stereo)))
    expect(snrDb(reference, samples)).toBeGreaterThan(60)
  })

  test('Opus at 48 kHz, from Ogg and from WebM', async () => {
    const ogg = speechFile('fox', 'ogg')
    const reference = int16Samples(
      toolOutput(['opusdec', '--quiet', '--no-dither', '--rate', '48000', 'IN', 'OUT'], ogg),
    )
    const { samples } = await decodeAll({ encoding: 'opus' }, ogg, 48_000)
    expect(samples.length).toBe(reference.length)
    expect(snrDb(reference, samples)).toBeGreaterThan(60)

    const webm = speechFile('fox', 'webm')
    const fromWebm = await decodeAll({ encoding: 'opus' }, webm, 48_000)
    const ofWebm = int16Samples(toolOutput([...ffmpegOpus, ...bare], webm))
    expect(snrDb(ofWebm, fromWebm.samples)).toBeGreaterThan(60)
  })

  test('Opus at every output rate of libopus, without time offset', async () => {
    const ogg = speechFile('fox', 'ogg')
    const original = int16Samples(speechFile('fox', 'pcm_int16'))
    for (const rateHz of [8000, 12_000, 16_000, 24_000, 44_100]) {
      const { samples } = await decodeAll({ encoding: 'opus' }, ogg, rateHz)
      expect(samples.length).toBe(Math.ceil((original.length * rateHz) / 16_000))
      const reference = int16Samples(speechAt(rateHz))
      expect(snrDb(reference, samples)).toBeGreaterThan(8)
    }
  })

  test('Opus in stereo and six channels, mixed to mono', async () => {
    for (const channels of [2, 6]) {
      const wav = toolOutput([...ffmpeg, ...spread(channels), '-f', 'wav', 'OUT'], fox())
      const ogg = toolOutput(['opusenc', '--quiet', '--bitrate', '256', 'IN', 'OUT'], wav)
      const decoded = toolOutput([...ffmpegOpus, '-ac', String(channels), ...bare], ogg)
      const { samples } = await decodeAll({ encoding: 'opus' }, ogg, 48_000)
      const reference = meanOfChannels(int16Samples(decoded), channels)
      expect(samples.length).toBe(reference.length)
      expect(snrDb(reference, samples)).toBeGreaterThan(40)
    }
  })

  test('Opus in two uncoupled streams', async () => {
    const wav = toolOutput([...ffmpeg, ...spread(2), '-f', 'wav', 'OUT'], fox())
    const separate = ['-c:a', 'libopus', '-mapping_family', '255', '-b:a', '128k', '-f', 'ogg']
    const ogg = toolOutput([...ffmpeg, ...separate, 'OUT'], wav)
    const decoded = toolOutput([...ffmpegOpus, '-ac', '2', ...bare], ogg)
    const { samples } = await decodeAll({ encoding: 'opus' }, ogg, 48_000)
    expect(snrDb(meanOfPairs(int16Samples(decoded)), samples)).toBeGreaterThan(40)
  })

  test('WAV resampled to the engine rate', async () => {
    for (const rateHz of [8000, 22_050, 44_100, 48_000]) {
      const wav = toolOutput(
        [...ffmpeg, '-ar', String(rateHz), '-ac', '2', '-f', 'wav', 'OUT'],
        speechFile('fox', 'wav'),
      )
      const { samples } = await decodeAll({ encoding: 'wav' }, wav)
      const reference = toolOutput(
        ['sox', '-R', '-t', 'wav', 'IN', '-t', 'raw', '-c', '1', '-b', '16', '-r', '16000', 'OUT'],
        wav,
      )
      // The filters differ only at the band edge.
      expect(snrDb(int16Samples(reference), samples)).toBeGreaterThan(30)
    }
  })
})

function fox(): Uint8Array {
  return speechFile('fox', 'wav')
}

const panned = ['-af', 'pan=stereo|c0=0.9*c0|c1=0.3*c0', '-ar', '44100']

/** The same voice in every channel with decreasing level. */
function spread(channels: number): string[] {
  const layout = channels === 2 ? 'stereo' : '5.1'
  const parts = Array.from({ length: channels }, (_, index) => `c${index}=${1 - index / 10}*c0`)
  return ['-af', `pan=${layout}|${parts.join('|')}`, '-ar', '48000']
}

function speechAt(rateHz: number): Uint8Array {
  return toolOutput(
    ['sox', '-R', '-t', 'wav', 'IN', '-t', 'raw', '-b', '16', '-r', String(rateHz), 'OUT'],
    fox(),
  )
}

function meanOfPairs(samples: Int16Array): Float32Array {
  return meanOfChannels(samples, 2)
}

function meanOfChannels(samples: Int16Array, channels: number): Float32Array {
  const mean = new Float32Array(samples.length / channels)
  for (const [at, sample] of samples.entries()) {
    const frame = Math.floor(at / channels)
    mean[frame] = (mean[frame] ?? 0) + sample / channels
  }
  return mean
}
