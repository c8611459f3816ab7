import type { Config } from '#config/schema.ts'
import type { Language, Word } from '#speech/engine.ts'
import type { EnginePool } from '#speech/engines/pool.ts'
import type { Log } from '#telemetry/log.ts'
import type { Recognition } from './live-recognition.ts'

export type RecognitionProgress = {
  readonly receivedMs: number
  /** Audio that the engine has processed. */
  readonly processedMs: number
  /** Audio covered by finals or known silence: it will not be needed again. */
  readonly finalMs: number
}

export type RecognitionOptions = {
  readonly language: Language
  /** Null: chosen by language. */
  readonly engineName: string | null
  readonly partials: boolean
  readonly words: boolean
  readonly partialsPerSecondMax: number
  readonly endpointingMs: number
  readonly vocabulary: readonly string[]
  /** Whether audio arrives in real time, so that lag deserves a warning. */
  readonly live: boolean
  readonly signal: AbortSignal
  /** Called synchronously and in order; never after an ending. */
  readonly listener: (event: RecognitionEvent) => void
}

export type RecognitionDeps = {
  readonly pool: EnginePool
  readonly settings: Config['speech']
  readonly log: Log
}

/** Resolves when an engine is ready to receive audio; rejects with an `EngineError`. */
export type OpenRecognition = (options: RecognitionOptions) => Promise<Recognition>

export type RecognitionEvent =
  | { readonly type: 'writable' }
  | { readonly type: 'progress' }
  | { readonly type: 'speech-start'; readonly atMs: number }
  | Transcript
  | { readonly type: 'finalized'; readonly id: string; readonly audioMs: number }
  | RecognitionWarning
  | { readonly type: 'ended'; readonly stats: RecognitionStats }
  | { readonly type: 'failed'; readonly code: RecognitionFailure; readonly stats: RecognitionStats }

/** Partials of one segment replace one another; its final is the last and never changes. */
export type Transcript = {
  readonly type: 'transcript'
  /** 1, 2, 3 … in the order of the finals. */
  readonly segment: number
  /** 1, 2, 3 … within the segment. */
  readonly rev: number
  readonly isFinal: boolean
  readonly speechFinal: boolean
  readonly text: string
  /** The beginning that is unlikely to change; the whole text of a final. */
  readonly stableText: string
  readonly startMs: number
  readonly endMs: number
  readonly confidence: number | null
  readonly words: readonly Word[]
  readonly fromFinalize: string | null
}

export type RecognitionWarning = {
  readonly type: 'warning'
  /**
   * `engine_lagging`: a live session lags by more than `max_lag_ms`. `engine_mute`: the engine
   * returns no text for speech. `engine_rollover`: a new engine continues the session.
   * `engine_waiting`: no engine is available at the moment. `audio_lost`: a span will never be
   * transcribed; it was lost in an engine failure or is missing in the audio. Sessions add `unknown_fields` and `frames_forgotten`.
   */
  readonly code: string
  readonly message: string
  readonly details: Record<string, unknown>
}

export type RecognitionFailure = 'engine_failed' | 'engine_stalled' | 'finalize_timeout'

/** A span of audio in milliseconds of the session. */
export type TimeSpan = { readonly startMs: number; readonly endMs: number }

/** Every millisecond is either silence, covered by a final, or untranscribed (or missing). */
export type RecognitionStats = RecognitionProgress & {
  readonly silenceMs: number
  readonly untranscribedMs: number
  /** The untranscribed spans, up to `gapsMax` of them. */
  readonly gaps: readonly TimeSpan[]
  readonly processedIsEstimated: boolean
  readonly finals: number
  readonly words: number
  readonly lagMsMax: number
  readonly engine: { readonly name: string; readonly sessions: number; readonly rollovers: number }
  /** From writing the last audio of a text to its event; null if not measured. */
  readonly latencyMs: {
    readonly firstPartial: number | null
    readonly finalP50: number | null
    readonly finalP95: number | null
  }
}
