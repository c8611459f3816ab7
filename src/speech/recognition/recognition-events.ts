import type { EngineFeatures, Word } from '#speech/engine.ts'
import type { Language } from '#speech/languages.ts'

/**
 * The engine's side of one session of a caller: one timeline, whatever happens to engines. It
 * bounds what an engine has not yet taken in, keeps what is not covered by a final (to replay it to
 * a fresh engine), and accounts for every millisecond. All times are milliseconds from the first
 * sample of the session.
 */
export type Recognition = {
  /** The first engine of the session. */
  readonly engine: { readonly name: string; readonly features: EngineFeatures }
  /** Of the samples that are written; it stays, also where a fresh engine wants another. */
  readonly sampleRateHz: number
  /** Milliseconds of audio that may be written now; 0: wait for `room`. */
  room(): number
  /** At most what `room` said, and one piece more. */
  write(samples: Int16Array): void
  /** Finals of all that was written, then `finalized` with this id. Several may wait. */
  finalize(id: string): void
  /** No more audio comes: the remaining finals, then `ended`. */
  end(): void
  /** Ends it now; no event follows. Returns what is known until here. */
  abort(): RecognitionStats
  progress(): RecognitionProgress
  stats(): RecognitionStats
}

export type RecognitionProgress = {
  readonly receivedMs: number
  /** What the engine has taken in. */
  readonly processedMs: number
  /** What finals, or known silence, cover: it will not be needed again. */
  readonly finalMs: number
}

export type RecognitionOptions = {
  readonly language: Language
  /** An engine by name; null: by language. */
  readonly engineName: string | null
  readonly partials: boolean
  readonly words: boolean
  readonly partialsPerSecondMax: number
  readonly endpointingMs: number
  readonly vocabulary: readonly string[]
  /** Whether audio comes as it is spoken, so that lagging behind is worth a warning. */
  readonly live: boolean
  readonly signal: AbortSignal
  /** Called synchronously and in order; after an ending, never again. */
  readonly listener: (event: RecognitionEvent) => void
}

export type RecognitionEvent =
  | { readonly type: 'room' }
  | { readonly type: 'progress' }
  | { readonly type: 'speech-start'; readonly atMs: number }
  | Transcript
  | { readonly type: 'finalized'; readonly id: string; readonly audioMs: number }
  | RecognitionWarning
  | { readonly type: 'ended'; readonly stats: RecognitionStats }
  | { readonly type: 'failed'; readonly code: RecognitionFailure; readonly stats: RecognitionStats }

/** Partials of one segment replace one another; its final is the last of it and never changes. */
export type Transcript = {
  readonly type: 'transcript'
  /** 1, 2, 3 … in the order of the finals. */
  readonly segment: number
  /** 1, 2, 3 … within the segment. */
  readonly rev: number
  readonly isFinal: boolean
  readonly speechFinal: boolean
  readonly text: string
  /** What will most likely not change any more; the whole text of a final. */
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
   * `engine_lagging`: a live session is further behind than `max_lag_ms`. `engine_mute`: speech
   * goes in and nothing comes out. `engine_rollover`: the session goes on with a fresh engine.
   * `engine_waiting`: no fresh engine can be had just now. `audio_lost`: this span was never
   * transcribed.
   */
  readonly code:
    | 'engine_lagging'
    | 'engine_mute'
    | 'engine_rollover'
    | 'engine_waiting'
    | 'audio_lost'
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

export type RecognitionFailure = 'engine_failed' | 'engine_stalled' | 'finalize_timeout'

export type Gap = { readonly startMs: number; readonly endMs: number }

/** Every millisecond is silence, covered by a final, or untranscribed; nothing is in two. */
export type RecognitionStats = RecognitionProgress & {
  readonly silenceMs: number
  readonly untranscribedMs: number
  /** Where; at most `gapsMax` of them are told. */
  readonly gaps: readonly Gap[]
  readonly processedIsEstimated: boolean
  readonly finals: number
  readonly words: number
  readonly lagMsMax: number
  readonly engine: { readonly name: string; readonly sessions: number; readonly rollovers: number }
  /** Since the audio of its end was written, as far as measured. */
  readonly latencyMs: {
    readonly firstPartial: number | null
    readonly finalP50: number | null
    readonly finalP95: number | null
  }
}
