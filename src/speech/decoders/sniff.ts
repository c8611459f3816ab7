import type { Encoding } from './decoder.ts'

/** A format detected from the first bytes of a stream. */
export type Sniffed = {
  readonly kind: 'wav' | 'ogg' | 'webm' | 'mp3' | 'mp4' | 'flac' | 'aiff' | 'aac'
  readonly name: string
  /** The encoding to declare; null if unsupported. */
  readonly encoding: Encoding | null
}

/** The bytes that `sniff` inspects. */
export const sniffBytes = 12

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
