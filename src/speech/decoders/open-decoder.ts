import {
  type AudioDecoder,
  AudioError,
  type AudioFormat,
  type Container,
  createFaults,
  type Encoding,
} from './decoder.ts'
import { openMp3Decoder } from './mp3.ts'
import { type OpusContainer, openOpusDecoder } from './opus.ts'
import { openPcmDecoder } from './pcm.ts'
import { type Sniffed, sniff, sniffBytes, sniffFrames } from './sniff.ts'
import { openWavDecoder } from './wav.ts'

/**
 * Opens a decoder to mono samples at `engineRateHz`. The first bytes are compared with the declared
 * format, so that audio of another encoding is refused instead of decoded as noise. Throws an
 * `AudioError` for an unsupported rate.
 */
export async function openAudioDecoder(
  format: AudioFormat,
  engineRateHz: number,
): Promise<AudioDecoder> {
  const { encoding, container } = format
  let opusContainer: OpusContainer = 'raw'
  const decoder = await openEncoding(format, engineRateHz, () => opusContainer)
  return withCheckedStart(decoder, encoding === 'opus' && container === 'raw', (start) => {
    const sniffed = sniff(start) ?? (hasNoSignature(format) ? null : sniffFrames(start))
    if (sniffed !== null) requireEncoding(sniffed, encoding)
    if (encoding === 'wav' && sniffed === null) throw wrongEncoding('not WAV', null)
    if (encoding === 'opus') opusContainer = chooseContainer(sniffed, container)
  })
}

async function openEncoding(
  format: AudioFormat,
  engineRateHz: number,
  opusContainer: () => OpusContainer,
): Promise<AudioDecoder> {
  switch (format.encoding) {
    case 'pcm_int16':
      return openSamples('int16', format, engineRateHz)
    case 'pcm_float32':
      return openSamples('float32', format, engineRateHz)
    case 'wav':
      return openWavDecoder(engineRateHz)
    case 'mp3':
      return await openMp3Decoder(engineRateHz)
    case 'opus':
      return await openOpusDecoder(engineRateHz, opusContainer)
  }
}

function openSamples(
  samples: 'int16' | 'float32',
  { sampleRateHz, channels }: AudioFormat,
  engineRateHz: number,
): AudioDecoder {
  return openPcmDecoder(samples, sampleRateHz ?? 0, channels, engineRateHz, createFaults())
}

/** Holds the first bytes back until there are enough to check. */
function withCheckedStart(
  decoder: AudioDecoder,
  byPacket: boolean,
  check: (start: Uint8Array) => void,
): AudioDecoder {
  let start: Uint8Array | null = new Uint8Array(0)

  function* decodeStart(held: Uint8Array, bytes: Uint8Array): Generator<Int16Array> {
    const joined = held.length === 0 ? bytes : joinBytes(held, bytes)
    if (joined.length < (byPacket ? 1 : sniffBytes)) {
      start = joined.slice()
      return
    }
    start = null
    check(joined)
    yield* decoder.decode(joined)
  }

  return {
    faults: decoder.faults,
    get sourceRateHz() {
      return decoder.sourceRateHz
    },
    // After the check, bytes are passed through.
    decode: (bytes) => (start === null ? decoder.decode(bytes) : decodeStart(start, bytes)),
    *end() {
      if (start !== null && start.length > 0) {
        check(start)
        yield* decoder.decode(start)
      }
      start = null
      yield* decoder.end()
    },
    close: () => decoder.close(),
  }
}

function joinBytes(first: Uint8Array, second: Uint8Array): Uint8Array {
  const joined = new Uint8Array(first.length + second.length)
  joined.set(first)
  joined.set(second, first.length)
  return joined
}

/** Whether the format has no signature. */
function hasNoSignature({ encoding, container }: AudioFormat): boolean {
  return encoding.startsWith('pcm') || (encoding === 'opus' && container === 'raw')
}

function requireEncoding({ kind, name, encoding }: Sniffed, declared: Encoding) {
  if (encoding === declared) return
  if (encoding !== null) throw wrongEncoding(name, encoding)
  const hint =
    kind === 'mp4' ? 'Record WebM or Ogg with Opus instead, such as audio/webm;codecs=opus.' : ''
  throw new AudioError(
    'unsupported_container',
    `The audio is ${name}, which is not supported. ${hint}`.trim(),
    hint === '' ? { container: kind } : { container: kind, hint },
  )
}

function wrongEncoding(found: string, encoding: Encoding | null): AudioError {
  if (encoding !== null) {
    return new AudioError(
      'wrong_encoding',
      `The audio is ${found}: declare encoding=${encoding}.`,
      { encoding },
    )
  }
  return new AudioError(
    'wrong_encoding',
    `The audio is ${found}; for bare samples declare encoding=pcm_int16 or pcm_float32.`,
  )
}

function chooseContainer(sniffed: Sniffed | null, declared: Container): OpusContainer {
  const found = sniffed?.kind === 'ogg' || sniffed?.kind === 'webm' ? sniffed.kind : 'raw'
  if (declared === found) return declared
  if (declared === 'auto' && found !== 'raw') return found
  if (declared === 'auto') {
    throw new AudioError(
      'unsupported_container',
      'The audio is neither Ogg nor WebM. For raw Opus packets, one per message, declare container=raw.',
      { container: 'raw' },
    )
  }
  const hint = found === 'raw' ? '' : ` It is ${found}: declare container=${found} or auto.`
  throw new AudioError(
    'unsupported_container',
    `The audio is not ${declared}, as declared.${hint}`,
    found === 'raw' ? {} : { container: found },
  )
}
