import type { Config } from '#config/schema.ts'
import type { AudioFaults } from '#speech/decoders/decoder.ts'
import type { Language } from '#speech/engine.ts'
import type { Recognition } from '#speech/recognition/live-recognition.ts'
import type {
  RecognitionEvent,
  RecognitionStats,
  Transcript,
} from '#speech/recognition/recognition.ts'
import type { Handshake } from './client-frames.ts'
import type { SessionQuery } from './query.ts'
import type { SessionStats, UnsentFrame } from './server-frames.ts'
import type { SessionError } from './session-error.ts'

/** Renders internal events and statistics as frames of the wire protocol. */

export const ackIntervalMs = 250

type ReadySession = {
  readonly sessionId: string
  readonly query: SessionQuery
  readonly handshake: Handshake
  readonly settings: Config['speech']
  /** Null if sessions cannot be resumed. */
  readonly resumeToken: string | null
}

export function renderReady(
  { sessionId, query, handshake, settings, resumeToken }: ReadySession,
  state: {
    readonly recognition: Recognition
    readonly isResumed: boolean
    readonly receivedBytes: number
    readonly creditBytes: number
  },
): UnsentFrame {
  const { engine, sampleRateHz: engineRateHz } = state.recognition
  const { encoding, container, channels, sampleRateHz } = handshake.format
  const { credit } = handshake.options
  return {
    type: 'session_ready',
    protocol: 1,
    session_id: sessionId,
    resumed: state.isResumed,
    received_bytes: state.receivedBytes,
    lang: query.language,
    engine: { name: engine.name, features: { ...engine.features } },
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
      credit_bytes: credit ? state.creditBytes : null,
      ack_interval_ms: credit ? ackIntervalMs : null,
    },
    resume_token: resumeToken,
  }
}

export function renderEvent(
  event: Extract<
    RecognitionEvent,
    { type: 'speech-start' | 'transcript' | 'finalized' | 'warning' }
  >,
  { query, handshake }: Pick<ReadySession, 'query' | 'handshake'>,
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

/** What the session counts besides the recognition. */
export type SessionCounts = {
  readonly receivedBytes: number
  readonly takenBytes: number
  readonly wallMs: number
  readonly partials: { readonly sent: number; readonly dropped: number }
  readonly pauses: number
  readonly pausedMs: number
  readonly queuedMsMax: number
  readonly resumes: number
  readonly faults: AudioFaults
}

export function renderStats(stats: RecognitionStats, counts: SessionCounts): SessionStats {
  const { faults, partials } = counts
  return {
    received_bytes: counts.receivedBytes,
    discarded_bytes: counts.receivedBytes - counts.takenBytes,
    audio_ms: wholeMs(stats.receivedMs),
    processed_ms: wholeMs(stats.processedMs),
    processed_is_estimated: stats.processedIsEstimated,
    silence_ms: wholeMs(stats.silenceMs),
    untranscribed_ms: wholeMs(stats.untranscribedMs),
    gaps: stats.gaps.map(({ startMs, endMs }) => ({
      start: toSeconds(startMs),
      end: toSeconds(endMs),
    })),
    wall_ms: wholeMs(counts.wallMs),
    finals: stats.finals,
    partials_sent: partials.sent,
    partials_dropped: partials.dropped,
    words: stats.words,
    pauses: counts.pauses,
    paused_ms: wholeMs(counts.pausedMs),
    max_queued_ms: wholeMs(counts.queuedMsMax),
    max_lag_ms: wholeMs(stats.lagMsMax),
    resumes: counts.resumes,
    faults: {
      clipped_samples: faults.clippedSamples,
      invalid_samples: faults.invalidSamples,
      corrupt_frames: faults.corruptFrames,
      decode_gaps: faults.gaps,
    },
    engine: {
      name: stats.engine.name,
      sessions: stats.engine.sessions,
      rollovers: stats.engine.rollovers,
    },
    latency_ms: {
      first_partial: wholeMsOrNull(stats.latencyMs.firstPartial),
      final_p50: wholeMsOrNull(stats.latencyMs.finalP50),
      final_p95: wholeMsOrNull(stats.latencyMs.finalP95),
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

function wholeMsOrNull(ms: number | null): number | null {
  return ms === null ? null : wholeMs(ms)
}
