import type { Gap, RecognitionWarning } from './recognition-events.ts'
import type { Rollover } from './rollover.ts'

const rolloverMessages = {
  failed: 'The engine broke off; the session goes on with a fresh one.',
  stalled: 'The engine made no progress; the session goes on with a fresh one.',
  mute: 'The engine found no words in speech; the session goes on with a fresh one.',
  limit: 'The engine has reached the limit of its session; the session goes on with a fresh one.',
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

/** `isReplaced`: another engine is to hear the same speech. */
export function engineMute(
  span: Gap & { speechMs: number },
  isReplaced: boolean,
): RecognitionWarning {
  return {
    type: 'warning',
    code: 'engine_mute',
    message: isReplaced
      ? 'The engine finds no words in what sounds like speech; another one is tried.'
      : 'No words were found in what sounds like speech.',
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
    message: 'Transcripts are far behind what is being said.',
    details: { lag_ms: lagMs },
  }
}

export function engineWaiting(): RecognitionWarning {
  return {
    type: 'warning',
    code: 'engine_waiting',
    message: 'No engine is free just now; the session waits for one.',
    details: {},
  }
}

/** The speech that was lost, in order. */
export function audioLost(spans: readonly Gap[]): RecognitionWarning {
  return {
    type: 'warning',
    code: 'audio_lost',
    message: 'Speech in this audio was lost with its engine and is not transcribed.',
    details: {
      start_ms: spans[0]?.startMs,
      end_ms: spans.at(-1)?.endMs,
      speech_ms: spans.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0),
    },
  }
}
