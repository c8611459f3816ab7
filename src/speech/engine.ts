/** The languages of the API, as ISO 639-1 codes; each engine serves some of them. */
export const languages = ['cs', 'de', 'el', 'en', 'fr', 'sk'] as const

export type Language = (typeof languages)[number]

export function isLanguage(code: string): code is Language {
  return languages.some((language) => language === code)
}

/**
 * Converts speech to text: a program, a server, or the built-in demo. An adapter is one file (or
 * folder) under `engines/` plus one line in its registry, and depends on nothing else of speech.
 * Audio is mono 16-bit PCM at `sampleRateHz`. Times are milliseconds from the first sample written
 * to the session.
 */
export type Engine = {
  readonly name: string
  readonly languages: readonly Language[]
  readonly sampleRateHz: number
  readonly features: EngineFeatures
  readonly limits: EngineLimits
  /** Whether it can serve the language now; absent: as configured. */
  available?(language: Language): boolean
  /** Whether it can serve another session in time; absent: as its limits say. */
  hasCapacity?(): boolean
  /** For clients: what this engine lacks, and how to get it. */
  readonly notice?: string
  /**
   * Opens a session that accepts audio. Rejects with an `EngineError` if the engine is not ready
   * within its `openMs` or `signal` aborts; nothing stays allocated then.
   */
  open(options: EngineOpenOptions): Promise<EngineSession>
  /** Releases resources that outlive sessions, such as warm processes. */
  close(): Promise<void>
}

/** What a program may declare to return. */
export const resultFeatures = ['partials', 'words', 'confidence'] as const

/** Capabilities that are announced to clients. */
export type EngineFeatures = Readonly<Record<(typeof resultFeatures)[number], boolean>> & {
  /** Whether `finalize` works without a pause in the audio. */
  readonly finalize: boolean
}

type EngineLimits = {
  /** Concurrent sessions in this process. */
  readonly sessionsMax: number
  /** Audio per session; a longer recognition continues in a new session. */
  readonly sessionMsMax: number
}

export type EngineOpenOptions = {
  readonly language: Language
  /** Likely words and phrases; engines without support ignore them. */
  readonly vocabulary: readonly string[]
  /** Silence that ends an utterance, for engines where it is configurable. */
  readonly endpointingMs: number
  readonly signal: AbortSignal
  /** Called synchronously and in order; never before `open` resolves, never after an ending. */
  readonly listener: (event: EngineEvent) => void
}

/**
 * One audio stream. The caller limits how much audio is written but not processed, so adapters
 * need no queue and never block.
 */
export type EngineSession = {
  /** The engine may keep the samples; the caller does not modify them. */
  write(samples: Int16Array): void
  /** Requests finals of all audio written so far; `finalized` follows them. One at a time. */
  finalize(): void
  /**
   * Whether only `end` returns finals of all audio, so that the caller ends this session instead of
   * calling `finalize`. Absent: never.
   */
  finalizesByEnding?(): boolean
  /** Marks the end of the audio. The remaining finals follow, then `ended`. */
  end(): void
  /** Ends the session immediately; no event follows. Idempotent, also after an ending. */
  abort(): void
}

/**
 * At most one utterance is open: each `partial` replaces the one before, a `final` closes it. An
 * adapter whose server responds out of order restores the order. Texts are never empty: a final
 * without text is an `utterance-dropped`, which withdraws the partials before it.
 */
export type EngineEvent =
  | ({ readonly type: 'partial' } & Span)
  | ({
      readonly type: 'final'
      readonly words: readonly Word[]
      /** 0 to 1; null if the engine reports none. */
      readonly confidence: number | null
      /** True if the speaker paused here; false if the engine split a long utterance. */
      readonly speechFinal: boolean
    } & Span)
  | { readonly type: 'utterance-dropped' }
  | { readonly type: 'speech-start'; readonly atMs: number }
  /**
   * The engine has processed the audio before this time; it never decreases. `estimated` if the
   * engine does not report it and the adapter derives it from what was sent.
   */
  | { readonly type: 'progress'; readonly processedMs: number; readonly estimated: boolean }
  /** The engine sent something, even if it is no result: it is slow at worst. */
  | { readonly type: 'alive' }
  /** The response to `finalize`. */
  | { readonly type: 'finalized' }
  /** An ending: the results of all audio written before `end` were delivered. */
  | { readonly type: 'ended' }
  /** An ending: the session failed. */
  | { readonly type: 'failed'; readonly error: EngineError }

export type Span = {
  readonly text: string
  /** Null if the engine reports no times; the caller estimates them. */
  readonly startMs: number | null
  readonly endMs: number | null
}

export type Word = {
  readonly word: string
  readonly startMs: number
  readonly endMs: number
  readonly confidence: number | null
}

export type EngineErrorKind =
  /** No connection, no process, or not ready in time. */
  | 'unreachable'
  /** All sessions are in use. */
  | 'busy'
  /** The engine rejected the session or the audio; a retry would not help. */
  | 'refused'
  /** The engine crashed, disconnected or violated its protocol. */
  | 'broken'
  /** The engine's own session limit was reached. */
  | 'limit'

/** `message` is for the log. Clients receive only the kind, because engines quote addresses. */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly kind: EngineErrorKind

  constructor(kind: EngineErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.kind = kind
  }
}

/** The duration of samples in whole milliseconds, rounded down. */
export function samplesToMs(samples: number, sampleRateHz: number): number {
  return Math.floor((samples * 1000) / sampleRateHz)
}

export function msToSamples(ms: number, sampleRateHz: number): number {
  return Math.floor((ms * sampleRateHz) / 1000)
}
