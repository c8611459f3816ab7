import type { Config } from '#config/schema.ts'
import type { AudioFaults } from '#speech/decoders/decoder.ts'
import type { Language } from '#speech/engine.ts'
import type { Recognition, RecognitionStats, Transcript } from '#speech/recognition/recognition.ts'
import type { Handshake } from './client-frames.ts'
import type { SessionStats, UnsentFrame } from './server-frames.ts'
import type { SessionError } from './session-error.ts'

/** Our milliseconds and events in the words of the wire. */

export const ackIntervalMs = 250

export function renderReady(session: {
  readonly id: string
  readonly language: Language
  readonly handshake: Handshake
  readonly recognition: Recognition
  readonly settings: Config['speech']
  readonly resumeToken: string | null
  readonly receivedBytes: number
  readonly isResumed: boolean
  readonly creditBytes: number
}): UnsentFrame {
  const { handshake, recognition, settings } = session
  const { encoding, container, channels, sampleRateHz } = handshake.format
  const { credit } = handshake.options
  return {
    type: 'session_ready',
    protocol: 1,
    session_id: session.id,
    resumed: session.isResumed,
    received_bytes: session.receivedBytes,
    lang: session.language,
    engine: { name: recognition.engine.name, features: { ...recognition.engine.features } },
    audio: {
      encoding,
      container,
      channels,
      sample_rate_hz: sampleRateHz,
      engine_rate_hz: recognition.sampleRateHz,
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
      credit_bytes: credit ? session.creditBytes : null,
      ack_interval_ms: credit ? ackIntervalMs : null,
    },
    resume_token: session.resumeToken,
  }
}

export function renderTranscript(
  transcript: Transcript,
  { language, words }: { language: Language; words: boolean },
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
    ...(words
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

/** What the session itself has counted. */
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

export function renderStats(known: RecognitionStats, counts: SessionCounts): SessionStats {
  const { faults, partials } = counts
  return {
    received_bytes: counts.receivedBytes,
    discarded_bytes: counts.receivedBytes - counts.takenBytes,
    audio_ms: whole(known.receivedMs),
    processed_ms: whole(known.processedMs),
    processed_is_estimated: known.processedIsEstimated,
    silence_ms: whole(known.silenceMs),
    untranscribed_ms: whole(known.untranscribedMs),
    gaps: known.gaps.map(({ startMs, endMs }) => ({
      start: toSeconds(startMs),
      end: toSeconds(endMs),
    })),
    wall_ms: whole(counts.wallMs),
    finals: known.finals,
    partials_sent: partials.sent,
    partials_dropped: partials.dropped,
    words: known.words,
    pauses: counts.pauses,
    paused_ms: whole(counts.pausedMs),
    max_queued_ms: whole(counts.queuedMsMax),
    max_lag_ms: whole(known.lagMsMax),
    resumes: counts.resumes,
    faults: {
      clipped_samples: faults.clippedSamples,
      invalid_samples: faults.invalidSamples,
      corrupt_frames: faults.corruptFrames,
      decode_gaps: faults.gaps,
    },
    engine: {
      name: known.engine.name,
      sessions: known.engine.sessions,
      rollovers: known.engine.rollovers,
    },
    latency_ms: {
      first_partial: wholeOrNull(known.latencyMs.firstPartial),
      final_p50: wholeOrNull(known.latencyMs.finalP50),
      final_p95: wholeOrNull(known.latencyMs.finalP95),
    },
  }
}

/** Seconds with three decimals; an engine's reckoning may begin before the first sample. */
export function toSeconds(ms: number): number {
  return whole(ms) / 1000
}

export function whole(ms: number): number {
  return Math.max(0, Math.round(ms))
}

function wholeOrNull(ms: number | null): number | null {
  return ms === null ? null : whole(ms)
}
