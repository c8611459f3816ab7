import type { OpusHead } from './opus-head.ts'

/** What a container holds, in order. The bytes are valid until the next part is asked for. */
export type OpusPart =
  | { readonly type: 'head'; readonly head: OpusHead }
  | {
      readonly type: 'packet'
      readonly packet: Uint8Array
      /** Samples at 48 kHz at its end that are not part of the sound. */
      readonly trimmed48: number
    }

/** The bytes of a container → its parts; what is incomplete waits for the next bytes. */
export type OpusDemuxer = {
  parts(bytes: Uint8Array): Iterable<OpusPart>
}
