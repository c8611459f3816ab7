import {
  type Engine,
  EngineError,
  type EngineErrorKind,
  type EngineEvent,
  type EngineOpenOptions,
  type EngineSession,
} from '#speech/engine.ts'
import { createListener, type SpokenWord, sampleRateHz } from './spoken-numbers.ts'

/** How one session of a scripted engine goes; times are of its own audio. */
export type Script = {
  readonly crashAtMs?: number
  readonly crashKind?: EngineErrorKind
  /** From here on it takes audio in and says nothing. */
  readonly muteFromMs?: number
  /** From here on it takes nothing in. */
  readonly stallAtMs?: number
  /** It cannot be opened. */
  readonly refusal?: EngineErrorKind
  /** It never says that it has ended. */
  readonly isEndless?: boolean
}

export type ScriptedEngineOptions = {
  readonly name?: string
  /** Of its sessions in their order; all others go well. */
  readonly scripts?: readonly Script[]
  readonly hasTimes?: boolean
  readonly hasPartials?: boolean
  /** The last word of a partial is often another one at first. */
  readonly wavers?: boolean
  /** It takes so much audio in at once, after a pause; 0: with the next turn of the loop. */
  readonly takeMs?: number
  readonly pauseMs?: number
  /** A longer utterance is cut. */
  readonly wordsMax?: number
  readonly sessionsMax?: number
  readonly sessionMsMax?: number
  readonly sampleRateHz?: number
}

export type ScriptedEngine = Engine & {
  /** Sessions that were asked for, and those that are going on. */
  readonly asked: () => number
  readonly running: () => number
  /** The most audio that a session was given and had not taken in. */
  readonly inFlightMsMax: () => number
}

type Job = { readonly samples: Int16Array } | 'finalize' | 'end'

/** The silence that ends an utterance. */
const endpointMs = 300

/**
 * An engine that understands spoken numbers, so that what is lost, doubled or out of order shows.
 * It answers when it gets to it, never within a call.
 */
export function createScriptedEngine(options: ScriptedEngineOptions = {}): ScriptedEngine {
  const tally = { asked: 0, running: 0, inFlightMsMax: 0 }
  const { hasTimes = true, hasPartials = true, sessionsMax = 100 } = options
  return {
    name: options.name ?? 'scripted',
    languages: ['en'],
    sampleRateHz: options.sampleRateHz ?? sampleRateHz,
    features: { partials: hasPartials, words: hasTimes, confidence: false, finalize: true },
    limits: { sessionsMax, sessionMsMax: options.sessionMsMax ?? 480_000 },
    async open({ signal, listener }) {
      const script = options.scripts?.[tally.asked] ?? {}
      tally.asked += 1
      await Bun.sleep(0)
      if (script.refusal) throw new EngineError(script.refusal, 'so it is scripted')
      if (signal.aborted) throw new EngineError('unreachable', 'nobody waits')
      tally.running += 1
      return new ScriptedSession({ ...options, hasTimes, hasPartials }, script, listener, tally)
    },
    close: async () => {},
    asked: () => tally.asked,
    running: () => tally.running,
    inFlightMsMax: () => tally.inFlightMsMax,
  }
}

class ScriptedSession implements EngineSession {
  readonly #options: ScriptedEngineOptions
  readonly #script: Script
  readonly #listener: EngineOpenOptions['listener']
  readonly #tally: { running: number; inFlightMsMax: number }
  readonly #ears = createListener()
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
      if (this.#ears.heardMs() >= (this.#script.stallAtMs ?? Number.POSITIVE_INFINITY)) return
      const job = this.#jobs.shift()
      if (job === undefined) return
      if (typeof job === 'string') this.#answer(job)
      else takenMs += this.#take(job.samples)
    }
    if (!this.#isOver && this.#jobs.length > 0) {
      this.#timer = setTimeout(() => this.#work(), this.#options.pauseMs ?? 0)
    }
  }

  /** In pieces, so that it can break off anywhere. */
  #take(samples: Int16Array): number {
    const pieceSamples = sampleRateHz / 100
    for (let at = 0; at < samples.length && !this.#isOver; at += pieceSamples) {
      const piece = samples.subarray(at, at + pieceSamples)
      this.#waitingSamples -= piece.length
      this.#hear(piece)
      if (this.#ears.heardMs() >= (this.#script.crashAtMs ?? Number.POSITIVE_INFINITY)) {
        const error = new EngineError(this.#script.crashKind ?? 'broken', 'so it is scripted')
        this.#close()
        this.#listener({ type: 'failed', error })
      }
    }
    const processedMs = this.#ears.heardMs()
    this.#tell({ type: 'progress', processedMs, estimated: false })
    return (samples.length * 1000) / sampleRateHz
  }

  #hear(samples: Int16Array): void {
    for (const word of this.#ears.hear(samples)) this.#understand(word)
    if (this.#ears.silenceMs() >= endpointMs) this.#conclude(true)
  }

  #understand(word: SpokenWord): void {
    if (word.startMs >= (this.#script.muteFromMs ?? Number.POSITIVE_INFINITY)) return
    this.#words.push(word)
    if (this.#options.hasPartials) this.#tell({ type: 'partial', ...this.#span(this.#draft()) })
    if (this.#words.length >= (this.#options.wordsMax ?? 50)) this.#conclude(false)
  }

  #draft(): string {
    const words = this.#words.map(({ word }) => word)
    this.#partials += 1
    if (this.#options.wavers && this.#partials % 3 > 0) words.splice(-1, 1, 'hm')
    return words.join(' ')
  }

  #conclude(speechFinal: boolean): void {
    if (this.#words.length === 0) return
    const text = this.#words.map(({ word }) => word).join(' ')
    const words = this.#options.hasTimes
      ? this.#words.map((word) => ({ ...word, confidence: null }))
      : []
    const span = this.#span(text)
    this.#words = []
    this.#tell({ type: 'final', ...span, words, confidence: null, speechFinal })
  }

  #span(text: string) {
    if (!this.#options.hasTimes) return { text, startMs: null, endMs: null }
    const startMs = this.#words[0]?.startMs ?? null
    return { text, startMs, endMs: this.#words.at(-1)?.endMs ?? null }
  }

  #answer(job: 'finalize' | 'end'): void {
    this.#conclude(true)
    if (job === 'finalize') this.#tell({ type: 'finalized' })
    else if (!this.#script.isEndless) {
      this.#close()
      this.#listener({ type: 'ended' })
    }
  }

  #tell(event: EngineEvent): void {
    if (!this.#isOver) this.#listener(event)
  }

  #close(): void {
    if (!this.#isOver) this.#tally.running -= 1
    this.#isOver = true
    clearTimeout(this.#timer)
  }
}
