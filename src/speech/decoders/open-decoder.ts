import { createByteReader } from './byte-reader.ts'
import {
  type AudioDecoder,
  AudioError,
  type AudioFormat,
  type AudioGap,
  type Container,
  type Encoding,
  type FormatDecoder,
} from './decoder.ts'
import { openMp3Decoder } from './mp3.ts'
import { type OpusContainer, openOpusDecoder } from './opus.ts'
import { createPcmDecoder } from './pcm.ts'
import { createSampleOutput, type SampleOutput } from './sample-output.ts'
import { createWavDecoder } from './wav.ts'

/**
 * Opens a decoder to mono samples at `engineRateHz`. The first bytes are compared with the declared
 * format, so that audio of another encoding is refused instead of decoded as noise. `onGap` is called
 * before the silence that replaces missing audio is pulled. Throws an `AudioError` for an unsupported
 * rate.
 */
export async function openAudioDecoder(
  format: AudioFormat,
  engineRateHz: number,
  onGap: (gap: AudioGap) => void = () => {},
): Promise<AudioDecoder> {
  const { encoding, container } = format
  const isRawOpus = encoding === 'opus' && container === 'raw'
  const hasSignature = !isRawOpus && !encoding.startsWith('pcm')
  const output = createSampleOutput(engineRateHz, onGap)
  let opusContainer: OpusContainer = 'raw'
  const decoder = await openEncoding(format, output, () => opusContainer)
  const start = createByteReader()
  let isChecked = false

  function checkStart(bytes: Uint8Array) {
    const sniffed = sniff(bytes) ?? (hasSignature ? sniffFrames(bytes) : null)
    if (sniffed !== null) requireEncoding(sniffed, encoding)
    if (encoding === 'wav' && sniffed === null) {
      throw new AudioError(
        'wrong_encoding',
        'The audio is not WAV; for bare samples declare encoding=pcm_int16 or pcm_float32.',
      )
    }
    if (encoding === 'opus') opusContainer = chooseContainer(sniffed, container)
  }

  /** Holds the first bytes back until there are enough to check. */
  function* decodeStart(bytesMin: number): Generator<Int16Array> {
    const bytes = start.peek(Math.max(bytesMin, start.available))
    if (bytes === null) return
    isChecked = true
    checkStart(bytes)
    yield* decoder.decode(bytes)
  }

  return {
    faults: output.faults,
    decode(bytes) {
      // After the check, bytes are passed through.
      if (isChecked) return decoder.decode(bytes)
      start.accept(bytes)
      return decodeStart(isRawOpus ? 1 : sniffBytes)
    },
    *end() {
      if (!isChecked) yield* decodeStart(1)
      if (decoder.end !== undefined) yield* decoder.end()
      yield* output.end()
    },
    close: () => decoder.close?.(),
  }
}

async function openEncoding(
  { encoding, sampleRateHz, channels }: AudioFormat,
  output: SampleOutput,
  opusContainer: () => OpusContainer,
): Promise<FormatDecoder> {
  switch (encoding) {
    case 'pcm_int16':
      return createPcmDecoder('int16', sampleRateHz ?? 0, channels, output)
    case 'pcm_float32':
      return createPcmDecoder('float32', sampleRateHz ?? 0, channels, output)
    case 'wav':
      return createWavDecoder(output)
    case 'mp3':
      return await openMp3Decoder(output)
    case 'opus':
      return await openOpusDecoder(output, opusContainer)
  }
}

function requireEncoding({ kind, name, encoding }: Sniffed, declared: Encoding) {
  if (encoding === declared) return
  if (encoding !== null) {
    throw new AudioError('wrong_encoding', `The audio is ${name}: declare encoding=${encoding}.`, {
      encoding,
    })
  }
  const hint =
    kind === 'mp4' ? 'Record WebM or Ogg with Opus instead, such as audio/webm;codecs=opus.' : ''
  throw new AudioError(
    'unsupported_container',
    `The audio is ${name}, which is not supported. ${hint}`.trim(),
    hint === '' ? { container: kind } : { container: kind, hint },
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

/** A format detected from the first bytes of a stream. */
export type Sniffed = {
  readonly kind: 'wav' | 'ogg' | 'webm' | 'mp3' | 'mp4' | 'flac' | 'aiff' | 'aac'
  readonly name: string
  /** The encoding to declare; null if unsupported. */
  readonly encoding: Encoding | null
}

/** The bytes that `sniff` inspects. */
const sniffBytes = 12

const wav: Sniffed = { kind: 'wav', name: 'WAV', encoding: 'wav' }
const ogg: Sniffed = { kind: 'ogg', name: 'Ogg', encoding: 'opus' }
const webm: Sniffed = { kind: 'webm', name: 'WebM', encoding: 'opus' }
const mp3: Sniffed = { kind: 'mp3', name: 'MP3', encoding: 'mp3' }
const mp4: Sniffed = { kind: 'mp4', name: 'MP4', encoding: null }
const flac: Sniffed = { kind: 'flac', name: 'FLAC', encoding: null }
const aiff: Sniffed = { kind: 'aiff', name: 'AIFF', encoding: null }
const aac: Sniffed = { kind: 'aac', name: 'AAC', encoding: null }

/** Detects formats with unambiguous signatures. */
export function sniff(bytes: Uint8Array): Sniffed | null {
  const text = String.fromCharCode(...bytes.subarray(0, sniffBytes))
  if (/^(RIFF|RF64)....WAVE/s.test(text)) return wav
  if (text.startsWith('OggS') && bytes[4] === 0 && (bytes[5] ?? 0) < 8) return ogg
  if (text.startsWith('\x1a\x45\xdf\xa3')) return webm
  if (text.startsWith('ID3') && bytes.subarray(3, 10).every((byte) => byte < 0x80)) return mp3
  if (text.slice(4, 8) === 'ftyp') return mp4
  if (text.startsWith('fLaC')) return flac
  if (/^FORM....AIF[FC]/s.test(text)) return aiff
  return null
}

/**
 * Detects MP3 or AAC frames. Their signature has only twelve bits, which bare samples may match by
 * chance, so this is only used when a container was declared.
 */
export function sniffFrames(bytes: Uint8Array): Sniffed | null {
  const [first = 0, second = 0, third = 0] = bytes
  if (first !== 0xff || (second & 0xe0) !== 0xe0) return null
  if ((second & 0xf6) === 0xf0) return aac
  const layer3 = (second & 0x06) === 0x02
  const knownVersion = (second & 0x18) !== 0x08
  const knownRates = third >> 4 !== 15 && (third & 0x0c) !== 0x0c
  return layer3 && knownVersion && knownRates ? mp3 : null
}
