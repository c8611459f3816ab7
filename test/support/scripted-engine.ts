import {
  type Engine,
  EngineError,
  type EngineErrorKind,
  type EngineEvent,
  type EngineOpenOptions,
  type EngineSession,
} from '#speech/engine.ts'
import { createNumberRecogniser, type SpokenWord, sampleRateHz } from './spoken-numbers.ts'

/** The behaviour of one session of a scripted engine; times are of its own audio. */
export type Script = {
  readonly crashAtMs?: number
  readonly crashKind?: EngineErrorKind
  /** From here on it processes audio and returns no text. */
  readonly muteFromMs?: number
  /** From here on it processes nothing. */
  readonly stallAtMs?: number
  /** Opening fails. */
  readonly refusal?: EngineErrorKind
  /** It never emits `ended`. */
  readonly isEndless?: boolean
}

export type ScriptedEngineOptions = {
  readonly name?: string
  /** One per session, in order; further sessions succeed. */
  readonly scripts?: readonly Script[]
  readonly hasTimes?: boolean
  readonly hasPartials?: boolean
  /** The last word of a partial is often wrong at first. */
  readonly isUnstable?: boolean
  /** Audio processed at once, after a pause of `pauseMs`. */
  readonly takeMs?: number
  readonly pauseMs?: number
  readonly canFinalize?: boolean
  /** It answers `finalize` when it is idle: audio written before that belongs to the utterance. */
  readonly answersLate?: boolean
  /** Longer utterances are split. */
  readonly wordsMax?: number
  readonly sessionsMax?: number
  readonly sessionMsMax?: number
  readonly sampleRateHz?: number
}

export type ScriptedEngine = Engine & {
  /** Sessions requested and in progress. */
  readonly opened: () => number
  readonly running: () => number
  /** The peak of audio received but not processed. */
  readonly inFlightMsMax: () => number
}

type Job = { readonly samples: Int16Array } | 'finalize' | 'end'

/** The silence that ends an utterance. */
const endpointMs = 300

/**
 * An engine that recognises spoken numbers, so that lost, repeated or reordered words are detected.
 * It never responds within a call.
 */
export function createScriptedEngine(options: ScriptedEngineOptions = {}): ScriptedEngine {
  const tally = { opened: 0, running: 0, inFlightMsMax: 0 }
  const { hasTimes = true, hasPartials = true, canFinalize = true, sessionsMax = 100 } = options
  return {
    name: options.name ?? 'scripted',
    languages: ['en'],
    sampleRateHz: options.sampleRateHz ?? sampleRateHz,
    features: { partials: hasPartials, words: hasTimes, confidence: false, finalize: canFinalize },
    limits: { sessionsMax, sessionMsMax: options.sessionMsMax ?? 480_000 },
    async open({ signal, listener }) {
      const script = options.scripts?.[tally.opened] ?? {}
      tally.opened += 1
      await Bun.sleep(0)
      if (script.refusal) throw new EngineError(script.refusal, 'scripted failure')
      if (signal.aborted) throw new EngineError('unreachable', 'cancelled')
      tally.running += 1
      return new ScriptedSession({ ...options, hasTimes, hasPartials }, script, listener, tally)
    },
    close: async () => {},
    opened: () => tally.opened,
    running: () => tally.running,
    inFlightMsMax: () => tally.inFlightMsMax,
  }
}

class ScriptedSession implements EngineSession {
  readonly #options: ScriptedEngineOptions
  readonly #script: Script
  readonly #listener: EngineOpenOptions['listener']
  readonly #tally: { running: number; inFlightMsMax: number }
  readonly #recogniser = createNumberRecogniser()
  readonly #jobs: Job[] = []
  #words: SpokenWord[] = []
  #partials = 0
  #waitingSamples = 0
  #isOver = false
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    options: ScriptedEngineOptions,
    script: Script,
    listener: EngineOpenOptions['listener'],
    tally: { running: number; inFlightMsMax: number },
  ) {
    this.#options = options
    this.#script = script
    this.#listener = listener
    this.#tally = tally
  }

  write(samples: Int16Array): void {
    this.#waitingSamples += samples.length
    const waitingMs = (this.#waitingSamples * 1000) / sampleRateHz
    this.#tally.inFlightMsMax = Math.max(this.#tally.inFlightMsMax, waitingMs)
    this.#add({ samples })
  }

  finalize(): void {
    this.#add('finalize')
  }

  end(): void {
    this.#add('end')
  }

  abort(): void {
    this.#close()
  }

  #add(job: Job): void {
    this.#jobs.push(job)
    if (!this.#isOver) this.#timer ??= setTimeout(() => this.#work(), this.#options.pauseMs ?? 0)
  }

  #work(): void {
    this.#timer = undefined
    for (let takenMs = 0; takenMs < (this.#options.takeMs ?? 500) && !this.#isOver; ) {
      if (this.#recogniser.processedMs() >= (this.#script.stallAtMs ?? Number.POSITIVE_INFINITY))
        return
      const job = this.#jobs.shift()
      if (job === undefined) return
      if (job === 'finalize' && this.#options.answersLate && this.#isAudioWaiting()) {
        this.#jobs.push(job)
      } else if (typeof job === 'string') this.#respond(job)
      else takenMs += this.#take(job.samples)
    }
    if (!this.#isOver && this.#jobs.length > 0) {
      this.#timer = setTimeout(() => this.#work(), this.#options.pauseMs ?? 0)
    }
  }

  #isAudioWaiting(): boolean {
    return this.#jobs.some((job) => typeof job !== 'string')
  }

  /** In pieces, so that it can crash anywhere. */
  #take(samples: Int16Array): number {
    const pieceSamples = sampleRateHz / 100
    for (let at = 0; at < samples.length && !this.#isOver; at += pieceSamples) {
      const piece = samples.subarray(at, at + pieceSamples)
      this.#waitingSamples -= piece.length
      this.#process(piece)
      if (this.#recogniser.processedMs() >= (this.#script.crashAtMs ?? Number.POSITIVE_INFINITY)) {
        const error = new EngineError(this.#script.crashKind ?? 'broken', 'scripted failure')
        this.#close()
        this.#listener({ type: 'failed', error })
      }
    }
    const processedMs = this.#recogniser.processedMs()
    this.#emit({ type: 'progress', processedMs, estimated: false })
    return (samples.length * 1000) / sampleRateHz
  }

  #process(samples: Int16Array): void {
    for (const word of this.#recogniser.process(samples)) this.#onWord(word)
    if (this.#recogniser.silenceMs() >= endpointMs) this.#finishUtterance(true)
  }

  #onWord(word: SpokenWord): void {
    if (word.startMs >= (this.#script.muteFromMs ?? Number.POSITIVE_INFINITY)) return
    this.#words.push(word)
    if (this.#options.hasPartials) this.#emit({ type: 'partial', ...this.#span(this.#draft()) })
    if (this.#words.length >= (this.#options.wordsMax ?? 50)) this.#finishUtterance(false)
  }

  #draft(): string {
    const words = this.#words.map(({ word }) => word)
    this.#partials += 1
    if (this.#options.isUnstable && this.#partials % 3 > 0) words.splice(-1, 1, 'hm')
    return words.join(' ')
  }

  #finishUtterance(speechFinal: boolean): void {
    if (this.#words.length === 0) return
    const text = this.#words.map(({ word }) => word).join(' ')
    const words = this.#options.hasTimes
      ? this.#words.map((word) => ({ ...word, confidence: null }))
      : []
    const span = this.#span(text)
    this.#words = []
    this.#emit({ type: 'final', ...span, words, confidence: null, speechFinal })
  }

  #span(text: string) {
    if (!this.#options.hasTimes) return { text, startMs: null, endMs: null }
    const startMs = this.#words[0]?.startMs ?? null
    return { text, startMs, endMs: this.#words.at(-1)?.endMs ?? null }
  }

  #respond(job: 'finalize' | 'end'): void {
    this.#finishUtterance(true)
    if (job === 'finalize') this.#emit({ type: 'finalized' })
    else if (!this.#script.isEndless) {
      this.#close()
      this.#listener({ type: 'ended' })
    }
  }

  #emit(event: EngineEvent): void {
    if (!this.#isOver) this.#listener(event)
  }

  #close(): void {
    if (!this.#isOver) this.#tally.running -= 1
    this.#isOver = true
    clearTimeout(this.#timer)
  }
}
