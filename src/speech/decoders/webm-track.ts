import { AudioError } from './decoder.ts'
import { childElements, readText, readUnsigned } from './ebml.ts'
import { isOpusHead, type OpusHead, plainOpusHead, readOpusHead } from './opus-head.ts'

export type WebmTrack = {
  readonly number: number
  readonly audio: boolean
  readonly codec: string
  /** What its codec says of itself, and what the container says about it. */
  readonly codecPrivate: Uint8Array | null
  readonly codecDelayNs: number | null
  readonly encoded: boolean
}

const audioType = 2
const opusCodec = 'A_OPUS'
/** More than the header of any Opus stream that is taken. */
const codecPrivateBytesMax = 64

const ids = {
  number: 0xd7,
  type: 0x83,
  codec: 0x86,
  codecPrivate: 0x63a2,
  codecDelay: 0x56aa,
  contentEncodings: 0x6d80,
}

/** The content of a TrackEntry. */
export function readTrack(content: Uint8Array): WebmTrack {
  const fields = new Map([...childElements(content)].map(({ id, content }) => [id, content]))
  const number = (id: number) => {
    const field = fields.get(id)
    return field === undefined ? null : readUnsigned(field)
  }
  return {
    number: number(ids.number) ?? 0,
    audio: number(ids.type) === audioType,
    codec: readText(fields.get(ids.codec) ?? new Uint8Array()),
    // The element's bytes are passing by; the head is read from them later.
    codecPrivate: fields.get(ids.codecPrivate)?.slice(0, codecPrivateBytesMax) ?? null,
    codecDelayNs: number(ids.codecDelay),
    encoded: fields.has(ids.contentEncodings),
  }
}

/** The first audio track with Opus, or why there is none. */
export function chooseTrack(tracks: readonly WebmTrack[]): WebmTrack {
  const audio = tracks.filter((track) => track.audio)
  const track = audio.find(({ codec }) => codec === opusCodec)
  if (track === undefined) throw noOpus(audio[0]?.codec)
  if (track.encoded) {
    throw new AudioError(
      'unsupported_audio',
      'The WebM track is compressed once more, or encrypted.',
    )
  }
  return track
}

export function trackHead(track: WebmTrack): OpusHead {
  const known = track.codecPrivate !== null && isOpusHead(track.codecPrivate)
  const head =
    known && track.codecPrivate !== null ? readOpusHead(track.codecPrivate) : plainOpusHead
  if (track.codecDelayNs === null) return head
  return { ...head, preSkip48: samples48(track.codecDelayNs) }
}

export function samples48(nanoseconds: number): number {
  return Math.round((nanoseconds * 48) / 1_000_000)
}

function noOpus(codec: string | undefined): AudioError {
  if (codec === undefined) {
    return new AudioError('unsupported_audio', 'The WebM has no audio track.')
  }
  return new AudioError('unsupported_audio', `WebM is taken with Opus; this holds ${codec}.`, {
    codec,
  })
}
