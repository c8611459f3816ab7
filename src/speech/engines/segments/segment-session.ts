import {
  EngineError,
  type EngineEvent,
  type EngineOpenOptions,
  type EngineSession,
  type Language,
  samplesToMs,
  type Word,
} from '#speech/engine.ts'
import { finalEvent } from '#speech/engines/words.ts'
import { type Segment, Segmenter } from './segmenter.ts'

/** The recognised text of a piece of audio; times are milliseconds of that audio. */
export type Recognised = {
  readonly text: string
  /** Empty if the recogniser reports no times. */
  readonly words: readonly Word[]
  readonly confidence: number | null
}

export type RecogniseRequest = {
  readonly samples: Int16Array
  readonly language: Language
  /** Text before this audio, and likely words. */
  readonly prompt: string
  /** A partial may be dropped if the recogniser is busy; `null` is returned then. */
  readonly isPartial: boolean
  readonly signal: AbortSignal
  /** The recogniser works, if on something else. */
  readonly alive: () => void
}

/** Recognises whole pieces of audio. Rejects with an `EngineError`, or anything after an abort. */
export type Recognise = (request: RecogniseRequest) => Promise<Recognised | null>

export type SegmentOptions = {
  readonly sampleRateHz: number
  readonly segmentMsMax: number
  /** New audio after which the open segment is recognised again; 0: no partials. */
  readonly partialMs: number
  /** Whether words have times, so that segments may overlap. */
  readonly hasWordTimes: () => boolean
}

/**
 * Segments that wait for their final, and audio since the first of them; with more the session
 * accepts no audio. Less than what a recognition keeps for replay, or it would ask for finals in the
 * middle of a word.
 */
const waitingMax = 3
const unfinishedMsMax = 18_000
/** The next partial waits this many times as long as the last one took. */
const partialPauseFactor = 2
const overlapMs = 600
/** The end of the text before, as context of the next segment. */
const promptCharsMax = 200
/** Sound around speech that is not a word of it. */
const silentText = /^[\s\p{P}]*(?:[[(*♪][^\])*♪]*[\])*♪][\s\p{P}]*)*$/u

/**
 * An engine session on a recogniser of whole pieces: it cuts the audio into segments by voice
 * activity, recognises each once it has ended, and before that repeatedly for partials. One request
 * at a time; finals come first.
 */
export class SegmentSession implements EngineSession {
  readonly #recognise: Recognise
  readonly #options: SegmentOptions
  readonly #opening: EngineOpenOptions
  readonly #segmenter: Segmenter
  readonly #aborting = new AbortController()
  readonly #waiting: Segment[] = []
  #isBusy = false
  /** An ending was emitted or will be, or it was aborted. */
  #isOver = false
  #isAborted = false
  #hasEnd = false
  #isFinalizing = false
  #hasPartial = false
  #context = ''
  /** Positions: of the audio that the last partial contained, and of the reported progress. */
  #partialTo = 0
  #processed = 0
  /** Before this time (of `performance.now()`) no partial is requested. */
  #partialAfter = 0

  constructor(recognise: Recognise, options: SegmentOptions, opening: EngineOpenOptions) {
    const { sampleRateHz, segmentMsMax, hasWordTimes } = options
    this.#recognise = recognise
    this.#options = options
    this.#opening = opening
    this.#segmenter = new Segmenter({
      sampleRateHz,
      segmentMsMax,
      endpointingMs: opening.endpointingMs,
      overlapMs: () => (hasWordTimes() ? overlapMs : 0),
    })
  }

  write(samples: Int16Array): void {
    if (this.#isOver || this.#hasEnd) return
    const { starts, segments } = this.#segmenter.push(samples)
    for (const atMs of starts) this.#later({ type: 'speech-start', atMs })
    this.#waiting.push(...segments)
    this.#next()
  }

  finalize(): void {
    if (this.#isOver || this.#hasEnd || this.#isFinalizing) return
    this.#isFinalizing = true
    this.#flush(false)
  }

  end(): void {
    if (this.#isOver || this.#hasEnd) return
    this.#hasEnd = true
    this.#flush(true)
  }

  abort(): void {
    this.#isOver = true
    this.#isAborted = true
    this.#waiting.length = 0
    this.#aborting.abort()
  }

  #flush(speechFinal: boolean): void {
    const last = this.#segmenter.flush(speechFinal)
    if (last !== null) this.#waiting.push(last)
    this.#next()
  }

  /** Starts the next request, if there is none, and reports what is complete. */
  #next(): void {
    if (this.#isOver) return
    this.#reportProgress()
    if (this.#isBusy) return
    const segment = this.#waiting[0]
    if (segment !== undefined) {
      void this.#request(segment, false)
      return
    }
    if (this.#isFinalizing) {
      this.#isFinalizing = false
      this.#later({ type: 'finalized' })
    }
    const open = this.#hasEnd ? null : this.#duePartial()
    if (this.#hasEnd) this.#end({ type: 'ended' })
    else if (open !== null) void this.#request(open, true)
  }

  /**
   * Audio counts as processed when it is part of a segment, which is an estimate, unless too many
   * segments wait.
   */
  #reportProgress(): void {
    const { end } = this.#segmenter
    const processedMs = samplesToMs(end, this.#options.sampleRateHz)
    const [first] = this.#waiting
    const unfinishedMs = first === undefined ? 0 : processedMs - first.fromMs
    const isFull = this.#waiting.length > waitingMax || unfinishedMs > unfinishedMsMax
    if (isFull || end <= this.#processed) return
    this.#processed = end
    this.#later({ type: 'progress', processedMs, estimated: true })
  }

  #duePartial(): Segment | null {
    const { partialMs, sampleRateHz } = this.#options
    if (partialMs === 0 || performance.now() < this.#partialAfter) return null
    const { end } = this.#segmenter
    if (samplesToMs(end - this.#partialTo, sampleRateHz) < partialMs) return null
    const open = this.#segmenter.current()
    if (open === null || open.speechToMs - open.speechFromMs < partialMs / 2) return null
    this.#partialTo = end
    return open
  }

  async #request(segment: Segment, isPartial: boolean): Promise<void> {
    this.#isBusy = true
    const startedAt = performance.now()
    try {
      const recognised = await this.#recognise({
        samples: segment.samples,
        language: this.#opening.language,
        prompt: this.#prompt(),
        isPartial,
        signal: this.#aborting.signal,
        alive: () => this.#emit({ type: 'alive' }),
      })
      if (this.#isOver) return
      const now = performance.now()
      this.#partialAfter = now + (now - startedAt) * partialPauseFactor
      if (!isPartial) {
        this.#waiting.shift()
        this.#onFinal(segment, recognised)
      } else if (recognised !== null && this.#waiting.length === 0) {
        this.#onPartial(segment, recognised)
      }
    } catch (error) {
      if (this.#isOver) return
      // A partial is only a preview; the final reports the failure.
      if (!isPartial) return this.#fail(error)
    } finally {
      this.#isBusy = false
    }
    this.#next()
  }

  #onPartial(segment: Segment, recognised: Recognised): void {
    const { text } = textOf(segment, recognised)
    if (text === '') return
    this.#hasPartial = true
    const { speechFromMs: startMs, speechToMs: endMs } = segment
    this.#emit({ type: 'partial', text, startMs, endMs })
  }

  #onFinal(segment: Segment, recognised: Recognised | null): void {
    const { text, words } = textOf(segment, recognised)
    const { speechFromMs: startMs, speechToMs: endMs, speechFinal } = segment
    const hadPartial = this.#hasPartial
    this.#hasPartial = false
    if (text === '') {
      if (hadPartial) this.#emit({ type: 'utterance-dropped' })
      return
    }
    this.#context = `${this.#context} ${text}`.slice(-promptCharsMax)
    const confidence = recognised?.confidence ?? null
    const event = finalEvent({ text, words, confidence, speechFinal })
    // The segment covers its speech, where the words are only estimates.
    this.#emit(event.type === 'final' ? { ...event, startMs, endMs } : event)
  }

  #prompt(): string {
    return [this.#opening.vocabulary.join(', '), this.#context.trim()]
      .filter((part) => part !== '')
      .join('. ')
  }

  #fail(cause: unknown): void {
    const error =
      cause instanceof EngineError
        ? cause
        : new EngineError('broken', 'the recogniser failed', { cause })
    this.#end({ type: 'failed', error })
  }

  #end(event: EngineEvent): void {
    this.#isOver = true
    this.#aborting.abort()
    this.#later(event)
  }

  #emit(event: EngineEvent): void {
    if (!this.#isOver) this.#opening.listener(event)
  }

  /** Emits in order, and never inside the call that caused the event. */
  #later(event: EngineEvent): void {
    queueMicrotask(() => {
      if (!this.#isAborted) this.#opening.listener(event)
    })
  }
}

/** The text of a segment without its context, with times of the session. */
function textOf(
  { fromMs, speechFromMs, speechToMs, own, samples }: Segment,
  recognised: Recognised | null,
): Pick<Recognised, 'text' | 'words'> {
  if (recognised === null || samples.length === 0 || silentText.test(recognised.text)) {
    return { text: '', words: [] }
  }
  const all = recognised.words.map((word) => {
    const startMs = Math.round(word.startMs + fromMs)
    return { ...word, startMs, endMs: Math.max(startMs, Math.round(word.endMs + fromMs)) }
  })
  // A word belongs to the segment in which its middle is.
  const kept = all.filter(({ startMs, endMs }) => {
    const middleMs = (startMs + endMs) / 2
    return own.fromMs <= middleMs && middleMs < own.toMs
  })
  const clamp = (ms: number) =>
    Math.min(Math.max(ms, speechFromMs), Math.max(speechFromMs, speechToMs))
  const words = kept.map((word) => ({
    ...word,
    startMs: clamp(word.startMs),
    endMs: clamp(word.endMs),
  }))
  const isPart = kept.length < all.length
  const text = isPart ? kept.map(({ word }) => word).join(' ') : recognised.text
  return { text: text.trim(), words }
}
