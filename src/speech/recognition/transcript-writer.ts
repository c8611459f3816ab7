import type { RecognitionEvent, RecognitionOptions, TimeSpan, Transcript } from './recognition.ts'

type PartialText = TimeSpan & { readonly text: string }
type StablePartial = PartialText & { readonly stableText: string }
type FinalText = PartialText &
  Pick<Transcript, 'speechFinal' | 'confidence' | 'words' | 'fromFinalize'>

type WriterOptions = Pick<RecognitionOptions, 'partials' | 'words' | 'partialsPerSecondMax'>

/**
 * Turns texts into transcript events: numbers segments and revisions, limits the rate of partials,
 * and emits `speech-start` once per segment, before its first text.
 */
export class TranscriptWriter {
  /** Whether the open segment has received a text. */
  isOpen = false
  readonly #options: WriterOptions
  readonly #emit: (event: RecognitionEvent) => void
  readonly #stable = new StablePrefix()
  readonly #throttle: PartialThrottle<StablePartial>
  readonly #showsPartials: boolean
  #finals = 0
  #words = 0
  #rev = 0
  #hasStarted = false
  #shown: PartialText | null = null

  constructor(options: WriterOptions, emit: (event: RecognitionEvent) => void) {
    this.#options = options
    this.#emit = emit
    this.#showsPartials = options.partials && options.partialsPerSecondMax > 0
    this.#throttle = new PartialThrottle(options.partialsPerSecondMax, (partial) =>
      this.#showPartial(partial),
    )
  }

  start(atMs: number): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#emit({ type: 'speech-start', atMs })
  }

  partial(partial: PartialText): void {
    this.isOpen = true
    if (!this.#showsPartials) return
    this.#throttle.push({ ...partial, ...this.#stable.update(partial.text) })
  }

  final(final: FinalText): void {
    this.#throttle.clear()
    this.start(final.startMs)
    this.#reset()
    const rev = this.#rev + 1
    this.#rev = 0
    this.#finals += 1
    this.#words += splitWords(final.text).length
    this.#emit({
      type: 'transcript',
      segment: this.#finals,
      rev,
      isFinal: true,
      stableText: final.text,
      ...final,
      words: this.#options.words ? final.words : [],
    })
  }

  /** Withdraws the partials of the open segment. */
  withdraw(): void {
    this.#throttle.clear()
    if (this.#shown !== null) this.#showPartial({ ...this.#shown, text: '', stableText: '' })
    this.#reset()
  }

  counts(): { readonly finals: number; readonly words: number } {
    return { finals: this.#finals, words: this.#words }
  }

  stop(): void {
    this.#throttle.clear()
  }

  #showPartial(partial: StablePartial): void {
    if (partial.text === (this.#shown?.text ?? '')) return
    this.start(partial.startMs)
    this.#shown = partial
    this.#rev += 1
    this.#emit({
      type: 'transcript',
      segment: this.#finals + 1,
      rev: this.#rev,
      isFinal: false,
      speechFinal: false,
      confidence: null,
      words: [],
      fromFinalize: null,
      ...partial,
    })
  }

  #reset(): void {
    this.#throttle.clear()
    this.#stable.reset()
    this.isOpen = false
    this.#hasStarted = false
    this.#shown = null
  }
}

/** Limits the rate of values: the newest replaces a waiting one, and the last is always shown. */
export class PartialThrottle<T> {
  readonly #intervalMs: number
  readonly #show: (value: T) => void
  #shownAt = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined
  #newest: { readonly value: T } | null = null

  constructor(perSecondMax: number, show: (value: T) => void) {
    this.#intervalMs = 1000 / perSecondMax
    this.#show = show
  }

  push(value: T): void {
    this.#newest = { value }
    if (this.#timer !== undefined) return
    const remainingMs = this.#shownAt + this.#intervalMs - performance.now()
    if (remainingMs <= 0) this.#showNewest()
    else this.#timer = setTimeout(() => this.#showNewest(), remainingMs)
  }

  /** Drops the waiting value. */
  clear(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#newest = null
  }

  #showNewest(): void {
    this.#timer = undefined
    const newest = this.#newest
    this.#newest = null
    if (newest === null) return
    this.#shownAt = performance.now()
    this.#show(newest.value)
  }
}

/**
 * The beginning of a caption that will not change: the words that two consecutive hypotheses share.
 * Stable words stay: where a later hypothesis differs or is shorter, as after an engine change, the
 * stable words are shown instead.
 */
export class StablePrefix {
  #stable: readonly string[] = []
  #previous: readonly string[] = []

  /** Returns the text to show and its stable beginning, which never shrinks and ends at a word. */
  update(text: string): { readonly text: string; readonly stableText: string } {
    const words = splitWords(text)
    // A repeated hypothesis confirms nothing: many engines resend their last one.
    if (words.join(' ') !== this.#previous.join(' ')) {
      const firstChange = words.findIndex((word, index) => word !== this.#previous[index])
      const count = firstChange < 0 ? words.length : firstChange
      if (count > this.#stable.length) {
        this.#stable = [...this.#stable, ...words.slice(this.#stable.length, count)]
      }
      this.#previous = words
    }
    const shown = [...this.#stable, ...words.slice(this.#stable.length)]
    return { text: shown.join(' '), stableText: this.#stable.join(' ') }
  }

  reset(): void {
    this.#stable = []
    this.#previous = []
  }
}

function splitWords(text: string): readonly string[] {
  return text.split(/\s+/).filter((word) => word !== '')
}
