import type { Language } from './languages.ts'

/**
 * What turns speech into text: a program, a server or what is built in. An adapter is one file (or
 * folder) under `engines/` and one line in its registry; it knows this contract and nothing else of
 * speech. Audio is mono PCM of 16 bit at `sampleRateHz`; times are milliseconds from the first
 * sample that was written to the session.
 */
export type Engine = {
  readonly name: string
  readonly languages: readonly Language[]
  readonly sampleRateHz: number
  readonly features: EngineFeatures
  readonly limits: EngineLimits
  /**
   * A session that takes audio. Rejects with an `EngineError` when the engine cannot be had in time
   * (`openMs` of the settings) or when `signal` aborts; nothing is left behind then.
   */
  open(options: EngineOpenOptions): Promise<EngineSession>
  /** Ends what has a lifetime of its own, such as warm processes. */
  close(): Promise<void>
}

/** What callers are told that they can expect. */
export type EngineFeatures = {
  readonly partials: boolean
  readonly words: boolean
  readonly confidence: boolean
  /** Whether `finalize` is answered without a pause of silence. */
  readonly finalize: boolean
}

type EngineLimits = {
  /** Sessions at once in this process. */
  readonly sessionsMax: number
  /** How long one session may be in audio; longer ones go on in a fresh session. */
  readonly sessionMsMax: number
}

export type EngineOpenOptions = {
  readonly language: Language
  /** Words that are likely to be said; an engine that cannot use them ignores them. */
  readonly vocabulary: readonly string[]
  /** The silence after which an utterance is over, for engines that can be told. */
  readonly endpointingMs: number
  readonly signal: AbortSignal
  /** Called synchronously and in order, never before `open` has resolved, never after an ending. */
  readonly listener: (event: EngineEvent) => void
}

/**
 * One stream of audio. The caller keeps what was written and is not processed yet within a limit in
 * milliseconds of audio, so an adapter needs no queue of its own; it never blocks.
 */
export type EngineSession = {
  /** The samples may be kept by the engine; the caller does not change them. */
  write(samples: Int16Array): void
  /** Asks for finals of all that was written; `finalized` follows them. One at a time. */
  finalize(): void
  /** No more audio comes. The remaining finals follow, then `ended`. */
  end(): void
  /** Ends it now; no event follows. Harmless after an ending, and when called twice. */
  abort(): void
}

/**
 * At most one utterance is open: a `partial` replaces the one before, a `final` closes it. An
 * adapter whose server answers in another order puts it in order. Texts are never empty: a final
 * without text is an `utterance-dropped`, which withdraws the partials before it.
 */
export type EngineEvent =
  | ({ readonly type: 'partial' } & Span)
  | ({
      readonly type: 'final'
      readonly words: readonly Word[]
      /** 0 to 1, null where the engine does not say. */
      readonly confidence: number | null
      /** Whether the speaker paused here; false where the engine cut a long utterance. */
      readonly speechFinal: boolean
    } & Span)
  | { readonly type: 'utterance-dropped' }
  | { readonly type: 'speech-start'; readonly atMs: number }
  /**
   * Audio before this time has been taken in by the engine; it never runs backwards. `estimated`
   * where the engine does not tell and the adapter reckons, by what was sent and a bound on its pace.
   */
  | { readonly type: 'progress'; readonly processedMs: number; readonly estimated: boolean }
  /** The answer to `finalize`. */
  | { readonly type: 'finalized' }
  /** An ending: all that was written before `end` has been answered. */
  | { readonly type: 'ended' }
  /** An ending: the engine broke off. */
  | { readonly type: 'failed'; readonly error: EngineError }

export type Span = {
  readonly text: string
  /** Null where the engine gives no times; the caller reckons them. */
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
  /** No connection, no process, not ready in time. */
  | 'unreachable'
  /** All of its sessions are taken. */
  | 'busy'
  /** It refused the session or the audio: trying again would not help. */
  | 'refused'
  /** It went away, or said what its protocol does not know. */
  | 'broken'
  /** Its own limit of a session was reached. */
  | 'limit'

/** `message` is for the log; callers are told the kind alone, since engines quote addresses. */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly kind: EngineErrorKind

  constructor(kind: EngineErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.kind = kind
  }
}
