import type { Config } from '#config/schema.ts'
import type { EngineEvent } from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import { EngineLine } from './engine-line.ts'
import type { EngineRun, RunRequest } from './engine-run.ts'
import { createHearing, type Hearing } from './hearing.ts'
import { createLagWatch, type LagWatch } from './lag-watch.ts'
import { createLatencyMeter } from './latency.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { createMuteWatch, type MuteWatch } from './mute-watch.ts'
import { clampWord, type Place, placeSpan } from './reckoning.ts'
import type {
  Recognition,
  RecognitionEvent,
  RecognitionFailure,
  RecognitionOptions,
  RecognitionProgress,
  RecognitionStats,
} from './recognition-events.ts'
import type { EngineLineHooks, Rollover } from './rollover.ts'
import { createTimescale } from './timescale.ts'
import { createTranscriptWriter, type TranscriptWriter } from './transcript-writer.ts'
import { audioLost, engineLagging, engineMute, engineRollover, engineWaiting } from './warnings.ts'

export type LiveDeps = {
  readonly settings: Config['speech']
  readonly log: Log
  readonly request: Omit<RunRequest, 'signal'>
}

type Partial = Extract<EngineEvent, { type: 'partial' }>
type Final = Extract<EngineEvent, { type: 'final' }>

/** What is kept of silence for a fresh engine, in case that it was none. */
const keptSilenceMs = 2_000

/** One session: what its engines say, on one timeline, and what became of every millisecond. */
export class LiveRecognition implements Recognition {
  readonly engine: Recognition['engine']
  readonly sampleRateHz: number
  readonly #options: RecognitionOptions
  readonly #settings: Config['speech']
  readonly #hearing: Hearing
  readonly #ledger: Ledger
  readonly #mute: MuteWatch
  readonly #lag: LagWatch
  readonly #latency = createLatencyMeter()
  readonly #transcripts: TranscriptWriter
  readonly #line: EngineLine
  readonly #follow = () => void this.abort()
  #processedMs = 0
  #finalMs = 0
  #isEstimated = false
  #partialText = ''
  /** The end of the last final is our reckoning. */
  #isEndReckoned = false
  #isWaitTold = false
  #isEnding = false
  #isOver = false
  #finalizeTimer: ReturnType<typeof setTimeout> | undefined

  constructor(run: EngineRun, { settings, log, request }: LiveDeps, options: RecognitionOptions) {
    const { name, features, sampleRateHz } = run.engine
    const timescale = createTimescale(sampleRateHz)
    this.engine = { name, features }
    this.sampleRateHz = sampleRateHz
    this.#options = options
    this.#settings = settings
    this.#hearing = createHearing(timescale)
    this.#ledger = createLedger(this.#hearing.speech)
    this.#mute = createMuteWatch(settings.muteMs, this.#hearing.speech)
    this.#lag = createLagWatch(options.live, settings.lagMsMax)
    this.#transcripts = createTranscriptWriter(options, (event) => this.#emit(event))
    this.#line = new EngineLine(
      run,
      {
        supply: { ...request, limitMs: settings.engineStallMs },
        timescale,
        inFlightMsMax: settings.inFlightMsMax,
        replayMsMax: settings.replayMsMax,
        stallMs: settings.engineStallMs,
        rolloversMax: settings.rolloversMax,
        log,
      },
      this.#hooks(),
    )
    options.signal.addEventListener('abort', this.#follow, { once: true })
    if (options.signal.aborted) this.abort()
  }

  room(): number {
    return this.#isEnding || this.#isOver ? 0 : this.#line.roomMs()
  }

  write(samples: Int16Array): void {
    if (this.#isEnding || this.#isOver || samples.length === 0) return
    this.#hearing.write(samples)
    const receivedMs = this.#hearing.receivedMs()
    this.#latency.wrote(receivedMs)
    this.#lag.wrote(receivedMs)
    this.#line.write(samples)
    this.#lag.room(this.#line.roomMs() > 0)
    this.#forget()
  }

  finalize(id: string): void {
    if (!this.#isEnding && !this.#isOver) this.#line.finalize(id)
  }

  end(): void {
    if (this.#isEnding || this.#isOver) return
    this.#isEnding = true
    const expire = () => this.#fail('finalize_timeout')
    this.#finalizeTimer = setTimeout(expire, this.#settings.finalizeMs)
    this.#line.end()
  }

  abort(): RecognitionStats {
    this.#stop()
    return this.stats()
  }

  progress(): RecognitionProgress {
    const pendingFromMs = this.#ledger.pendingFromMs() ?? Number.POSITIVE_INFINITY
    const { receivedMs, knownMs } = this.#hearing
    const silentUntilMs = Math.min(pendingFromMs, this.#isEnding ? receivedMs() : knownMs())
    this.#finalMs = Math.max(this.#finalMs, this.#ledger.edgeMs(), silentUntilMs)
    return { receivedMs: receivedMs(), processedMs: this.#processedMs, finalMs: this.#finalMs }
  }

  stats(): RecognitionStats {
    const sessions = this.#line.sessions()
    const { silenceMs, untranscribedMs, gaps } = this.#ledger.totals(this.#hearing.receivedMs())
    return {
      ...this.progress(),
      silenceMs,
      untranscribedMs,
      gaps,
      processedIsEstimated: this.#isEstimated,
      ...this.#transcripts.counts(),
      lagMsMax: this.#lag.lagMsMax(),
      engine: { name: this.#line.engine().name, sessions, rollovers: sessions - 1 },
      latencyMs: this.#latency.summary(),
    }
  }

  #hooks(): EngineLineHooks {
    return {
      heard: (event) => this.#hear(event),
      drained: (untilMs) => this.#onDrained(untilMs),
      finalized: (requests) => {
        for (const request of requests) this.#emit({ type: 'finalized', ...request })
      },
      room: () => {
        this.#lag.room(true)
        this.#emit({ type: 'room' })
      },
      rolledOver: (rollover) => this.#onRollover(rollover),
      waiting: () => {
        if (!this.#isWaitTold) this.#emit(engineWaiting())
        this.#isWaitTold = true
      },
      lost: (untilMs) => {
        const lost = this.#ledger.giveUp(untilMs)
        if (lost.length > 0) this.#emit(audioLost(lost))
      },
      ended: () => {
        this.#processedMs = this.#hearing.receivedMs()
        this.#finish((stats) => ({ type: 'ended', stats }))
      },
      failed: (reason) => this.#fail(reason === 'stalled' ? 'engine_stalled' : 'engine_failed'),
      uncoveredFromMs: () => this.#ledger.edgeMs(),
      isQuietAt: (atMs) => this.#hearing.isQuietAt(atMs),
    }
  }

  #hear(event: EngineEvent): void {
    switch (event.type) {
      case 'partial':
        this.#onPartial(event)
        break
      case 'final':
        this.#onFinal(event)
        break
      case 'utterance-dropped':
        this.#transcripts.withdraw()
        break
      case 'speech-start':
        this.#transcripts.begin(Math.max(event.atMs, this.#ledger.edgeMs()))
        break
      case 'progress':
        this.#isEstimated ||= event.estimated
        break
      default:
    }
    this.#onProgress(event.type === 'final')
  }

  #onPartial(partial: Partial): void {
    const { startMs, endMs } = this.#place(partial)
    // An engine that repeats itself says nothing.
    if (partial.text !== this.#partialText) this.#mute.token(this.#line.processedMs() ?? 0)
    this.#partialText = partial.text
    this.#latency.partial(endMs)
    this.#transcripts.partial({ text: partial.text, startMs, endMs })
  }

  #onFinal(final: Final): void {
    const { startMs, endMs, isReckoned } = this.#place(final)
    const { text, speechFinal, confidence } = final
    this.#ledger.addFinal(startMs, endMs, speechFinal)
    this.#isEndReckoned = isReckoned
    this.#partialText = ''
    this.#mute.token(this.#line.processedMs() ?? endMs)
    this.#latency.final(endMs)
    this.#transcripts.final({
      text,
      startMs,
      endMs,
      speechFinal,
      confidence,
      words: final.words.map((word) => clampWord(word, startMs, endMs)),
      fromFinalize: this.#line.askedId(),
    })
  }

  #place(span: Partial | Final): Place {
    const bounds = {
      fromMs: this.#ledger.edgeMs(),
      processedMs: this.#line.processedMs() ?? this.#processedMs,
      writtenMs: this.#line.writtenMs(),
      endpointingMs: this.#options.endpointingMs,
    }
    return placeSpan(span, bounds, this.#hearing.speech)
  }

  #onProgress(hasFinal: boolean): void {
    const processedMs = this.#line.processedMs()
    if (processedMs === null) return
    const hasMoved = processedMs > this.#processedMs
    this.#processedMs = Math.max(this.#processedMs, processedMs)
    this.#forget()
    if (hasMoved || hasFinal) this.#emit({ type: 'progress' })
    const lagMs = this.#lag.check(this.#hearing.receivedMs(), processedMs)
    if (lagMs !== null) this.#emit(engineLagging(lagMs))
    this.#checkMute(processedMs)
  }

  #checkMute(processedMs: number): void {
    const mute = this.#mute.check(processedMs, this.#line.engine().features.partials)
    if (mute === null) return
    const isReplaced = !mute.isAgreed && this.#line.mayReplace()
    this.#emit(engineMute(mute, isReplaced))
    if (isReplaced) this.#line.replace('mute')
  }

  /** An engine that gives no times has said all of what is before this time. */
  #onDrained(untilMs: number): void {
    const edgeMs = this.#ledger.edgeMs()
    if (this.#isEndReckoned) this.#ledger.addFinal(edgeMs, untilMs, true)
    this.#isEndReckoned = false
  }

  #onRollover(rollover: Rollover): void {
    this.#isWaitTold = false
    this.#isEndReckoned = false
    this.#mute.restart(rollover.atMs)
    this.#emit(engineRollover(rollover))
  }

  /** Silence need not be kept, unless an engine hears words in it. */
  #forget(): void {
    const edgeMs = this.#ledger.edgeMs()
    const wordsFromMs = this.#ledger.pendingFromMs() ?? this.#hearing.receivedMs()
    const isSilence = !this.#transcripts.isOpen()
    this.#line.forgetBefore(isSilence ? Math.max(edgeMs, wordsFromMs - keptSilenceMs) : edgeMs)
  }

  #fail(code: RecognitionFailure): void {
    this.#finish((stats) => ({ type: 'failed', code, stats }))
  }

  #finish(ending: (stats: RecognitionStats) => RecognitionEvent): void {
    if (this.#isOver) return
    this.#stop()
    this.#options.listener(ending(this.stats()))
  }

  #stop(): void {
    this.#isOver = true
    clearTimeout(this.#finalizeTimer)
    this.#options.signal.removeEventListener('abort', this.#follow)
    this.#transcripts.stop()
    this.#line.close()
  }

  #emit(event: RecognitionEvent): void {
    if (!this.#isOver) this.#options.listener(event)
  }
}
