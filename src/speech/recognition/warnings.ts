import type { ConnectionFailure } from './engine-connection.ts'
import type { RecognitionWarning, TimeSpan } from './recognition.ts'

/** `limit`: the engine's own session limit was near or reached; nothing failed. */
export type RolloverReason = ConnectionFailure | 'mute' | 'limit'

export type Rollover = {
  readonly reason: RolloverReason
  /** Engine names. */
  readonly from: string
  readonly to: string
  /** Where the new engine starts. */
  readonly atMs: number
  /** Earlier audio that the new engine receives again. */
  readonly replayedMs: number
}

const rolloverMessages = {
  failed: 'The speech engine failed; the session continues on a new engine.',
  stalled: 'The speech engine made no progress; the session continues on a new engine.',
  mute: 'The speech engine returned no text for speech; the session continues on a new engine.',
  limit: "The speech engine's session limit was reached; the session continues on a new engine.",
} as const

export function engineRollover(rollover: Rollover): RecognitionWarning {
  const { reason, from, to, atMs, replayedMs } = rollover
  return {
    type: 'warning',
    code: 'engine_rollover',
    message: rolloverMessages[reason],
    details: { reason, from, to, at_ms: atMs, replayed_ms: replayedMs },
  }
}

/** `isReplaced`: another engine will receive the same audio. */
export function engineMute(
  span: TimeSpan & { speechMs: number },
  isReplaced: boolean,
): RecognitionWarning {
  return {
    type: 'warning',
    code: 'engine_mute',
    message: isReplaced
      ? 'The speech engine returns no text for audio that sounds like speech; trying another engine.'
      : 'No text was recognised in audio that sounds like speech.',
    details: {
      start_ms: span.startMs,
      end_ms: span.endMs,
      speech_ms: span.speechMs,
      replaced: isReplaced,
    },
  }
}

export function engineLagging(lagMs: number): RecognitionWarning {
  return {
    type: 'warning',
    code: 'engine_lagging',
    message: 'Transcripts lag far behind the live audio.',
    details: { lag_ms: lagMs },
  }
}

export function engineWaiting(): RecognitionWarning {
  return {
    type: 'warning',
    code: 'engine_waiting',
    message: 'No speech engine is available; the session is waiting for one.',
    details: {},
  }
}

/** `spans`: the lost speech, in order. */
export function audioLost(spans: readonly TimeSpan[]): RecognitionWarning {
  return {
    type: 'warning',
    code: 'audio_lost',
    message: 'Speech was lost in an engine failure and will not be transcribed.',
    details: {
      start_ms: spans[0]?.startMs,
      end_ms: spans.at(-1)?.endMs,
      speech_ms: spans.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0),
    },
  }
}
