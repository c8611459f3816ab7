import type { VoiceFiles } from './package.ts'

/** The messages between the gateway and a process that speaks. */

/** Of the voices that are used. */
export const voiceRateHz = 16_000
/** What the format `pcm` means. */
export const pcmRateHz = 24_000

export const voices = ['slt', 'awb', 'kal16', 'rms'] as const
export type Voice = (typeof voices)[number]

export const outputFormats = ['mp3', 'opus', 'wav', 'pcm'] as const
export type OutputFormat = (typeof outputFormats)[number]

export type ToChild =
  | { readonly type: 'load'; readonly files: VoiceFiles }
  | {
      readonly type: 'begin'
      readonly voice: Voice
      readonly format: OutputFormat
      readonly speed: number
    }
  | { readonly type: 'say'; readonly text: string }
  /** No more text: what the encoder still holds. */
  | { readonly type: 'finish' }

/** Each message to the process has one reply, in order. */
export type FromChild =
  | { readonly type: 'ready' }
  | { readonly type: 'audio'; readonly bytes: Uint8Array }
  | { readonly type: 'failed'; readonly detail: string }
