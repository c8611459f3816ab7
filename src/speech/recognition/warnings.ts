import type { ConnectionFailure } from './engine-connection.ts'
import type { RecognitionWarning, TimeSpan } from './recognition.ts'
import { type SilentSpeech, totalMs } from './speech-activity.ts'

const messages = {
  engine_lagging: 'Transcripts lag far behind the live audio.',
  engine_waiting: 'No speech engine is available; the session is waiting for one.',
  audio_lost: 'Speech was lost in an engine failure and will not be transcribed.',
  unknown_fields: 'The handshake contains unknown parameters or fields.',
  frames_forgotten: 'Some of the missed frames are no longer available.',
}

/** A warning whose code determines its message. */
export function warning(code: keyof typeof messages, details: object): RecognitionWarning {
  return { type: 'warning', code, message: messages[code], details: { ...details } }
}

/**
 * `limit`: the engine's own session limit was near or reached; `finalize`: it returns finals only at
 * its end. Nothing failed then.
 */
export type RolloverReason = ConnectionFailure | 'mute' | 'limit' | 'finalize'

export type Rollover = {
  readonly reason: Exclude<RolloverReason, 'finalize'>
  /** Engine names. */
  readonly from: string
  readonly to: string
  /** Where the new engine starts. */
  readonly atMs: number
  /** Earlier audio that the new engine receives again. */
  readonly replayedMs: number
}

const rolloverCauses = {
  failed: 'The speech engine failed',
  stalled: 'The speech engine made no progress',
  mute: 'The speech engine returned no text for speech',
  limit: "The speech engine's session limit was reached",
}

export function engineRollover(rollover: Rollover): RecognitionWarning {
  const { reason, from, to, atMs, replayedMs } = rollover
  return {
    type: 'warning',
    code: 'engine_rollover',
    message: `${rolloverCauses[reason]}; the session continues on a new engine.`,
    details: { reason, from, to, at_ms: atMs, replayed_ms: replayedMs },
  }
}

/** `replaced`: another engine will receive the same audio. */
export function engineMute(
  { startMs, endMs, speechMs }: SilentSpeech,
  replaced: boolean,
): RecognitionWarning {
  return {
    type: 'warning',
    code: 'engine_mute',
    message: replaced
      ? 'The speech engine returns no text for audio that sounds like speech; trying another engine.'
      : 'No text was recognised in audio that sounds like speech.',
    details: { start_ms: startMs, end_ms: endMs, speech_ms: speechMs, replaced },
  }
}

/** The source itself has a gap. */
export function audioMissing({ startMs, endMs }: TimeSpan): RecognitionWarning {
  const details = { reason: 'missing', start_ms: startMs, end_ms: endMs }
  const message = 'Audio is missing according to its timestamps; later times take it into account.'
  return { type: 'warning', code: 'audio_lost', message, details }
}

/** `spans`: the lost speech, in order. */
export function audioLost(spans: readonly TimeSpan[]): RecognitionWarning {
  return warning('audio_lost', {
    reason: 'engine',
    start_ms: spans[0]?.startMs,
    end_ms: spans.at(-1)?.endMs,
    speech_ms: totalMs(spans),
  })
}
