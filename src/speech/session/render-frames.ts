import type { AudioFaults } from '#speech/decoders/decoder.ts'
import type { Language } from '#speech/engine.ts'
import type { Recognition } from '#speech/recognition/live-recognition.ts'
import type {
  RecognitionEvent,
  RecognitionStats,
  Transcript,
} from '#speech/recognition/recognition.ts'
import type { SessionStats, UnsentFrame } from './server-frames.ts'
import type { SessionStart, SpeechSession } from './session.ts'
import type { SessionError } from './session-error.ts'

/** Renders internal events and statistics as frames of the wire protocol. */

export const ackIntervalMs = 250

export function renderReady(
  { id, start, deps: { settings }, resumeToken, queue }: SpeechSession,
  { engine, sampleRateHz: engineRateHz }: Recognition,
  isResumed: boolean,
): UnsentFrame {
  const { query, handshake } = start
  const { encoding, container, channels, sampleRateHz } = handshake.format
  const { credit } = handshake.options
  return {
    type: 'session_ready',
    protocol: 1,
    session_id: id,
    resumed: isResumed,
    received_bytes: queue.receivedBytes,
    lang: query.language,
    engine: {
      name: engine.name,
      features: { ...engine.features },
      ...(engine.notice === undefined ? {} : { notice: engine.notice }),
    },
    audio: {
      encoding,
      container,
      channels,
      sample_rate_hz: sampleRateHz,
      engine_rate_hz: engineRateHz,
    },
    limits: {
      max_frame_bytes: settings.frameBytesMax,
      max_session_ms: settings.sessionMsMax,
      idle_timeout_ms: settings.idleMs,
      max_lag_ms: settings.lagMsMax,
      resume_ms: settings.resumeMs,
    },
    flow: {
      mode: credit ? 'credit' : 'none',
      credit_bytes: credit ? queue.grantCredit() : null,
      ack_interval_ms: credit ? ackIntervalMs : null,
    },
    resume_token: settings.resumeMs > 0 ? resumeToken : null,
  }
}

export function renderEvent(
  event: Extract<
    RecognitionEvent,
    { type: 'speech-start' | 'transcript' | 'finalized' | 'warning' }
  >,
  { query, handshake }: SessionStart,
): UnsentFrame {
  switch (event.type) {
    case 'speech-start':
      return { type: 'speech_start', at: toSeconds(event.atMs) }
    case 'finalized':
      return { type: 'finalized', id: event.id, audio_ms: wholeMs(event.audioMs) }
    case 'warning':
      return event
    case 'transcript':
      return renderTranscript(event, query.language, handshake.options.words)
  }
}

function renderTranscript(
  transcript: Transcript,
  language: Language,
  hasWords: boolean,
): UnsentFrame {
  const { segment, rev, text } = transcript
  const start = toSeconds(transcript.startMs)
  const end = toSeconds(transcript.endMs)
  const common = { type: 'transcript', segment, rev, text, start, end } as const
  if (!transcript.isFinal) return { ...common, is_final: false, stable_text: transcript.stableText }
  return {
    ...common,
    is_final: true,
    speech_final: transcript.speechFinal,
    confidence: transcript.confidence,
    lang: language,
    ...(hasWords
      ? {
          words: transcript.words.map((word) => ({
            word: word.word,
            start: toSeconds(word.startMs),
            end: toSeconds(word.endMs),
            confidence: word.confidence,
          })),
        }
      : {}),
    from_finalize: transcript.fromFinalize,
  }
}

export function renderSessionError(error: SessionError, stats: SessionStats | null): UnsentFrame {
  return {
    type: 'error',
    fatal: true,
    error: {
      code: error.code,
      message: error.message,
      param: error.param,
      retryable: error.retryable,
      details: error.details,
    },
    close_code: error.closeCode,
    ...(stats === null ? {} : { stats }),
  }
}

/** The statistics of the recognition and the decoder; the session adds its own. */
export function renderStats(stats: RecognitionStats, faults: AudioFaults) {
  const { name, sessions, rollovers } = stats.engine
  return {
    audio_ms: wholeMs(stats.receivedMs),
    processed_ms: wholeMs(stats.processedMs),
    processed_is_estimated: stats.processedIsEstimated,
    silence_ms: wholeMs(stats.silenceMs),
    untranscribed_ms: wholeMs(stats.untranscribedMs),
    gaps: stats.gaps.map(({ startMs, endMs }) => ({
      start: toSeconds(startMs),
      end: toSeconds(endMs),
    })),
    finals: stats.finals,
    words: stats.words,
    max_lag_ms: wholeMs(stats.lagMsMax),
    faults: {
      clipped_samples: faults.clippedSamples,
      invalid_samples: faults.invalidSamples,
      corrupt_frames: faults.corruptFrames,
      decode_gaps: faults.gaps,
    },
    engine: { name, sessions, rollovers },
    latency_ms: {
      first_partial: stats.latencyMs.firstPartial,
      final_p50: stats.latencyMs.finalP50,
      final_p95: stats.latencyMs.finalP95,
    },
  }
}

/** Seconds with three decimals; an engine's estimate may be before the first sample. */
function toSeconds(ms: number): number {
  return wholeMs(ms) / 1000
}

export function wholeMs(ms: number): number {
  return Math.max(0, Math.round(ms))
}
