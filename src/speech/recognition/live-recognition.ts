import type { Config } from '#config/schema.ts'
import type { Engine, EngineEvent } from '#speech/engine.ts'
import {
  type EngineConnection,
  type EngineRequest,
  openEngineConnection,
} from './engine-connection.ts'
import { EngineFailover } from './engine-failover.ts'
import { LagMeter, LatencyMeter } from './latency.ts'
import { AudioLedger } from './ledger.ts'
import type {
  RecognitionDeps,
  RecognitionEvent,
  RecognitionFailure,
  RecognitionOptions,
  RecognitionProgress,
  RecognitionStats,
} from './recognition.ts'
import {
  clampWord,
  type EstimatedSpan,
  estimateSpan,
  SilenceDetector,
  SpeechActivity,
} from './speech-activity.ts'
import { TranscriptWriter } from './transcript-writer.ts'
import { engineMute, warning } from './warnings.ts'

type Partial = Extract<EngineEvent, { type: 'partial' }>
type Final = Extract<EngineEvent, { type: 'final' }>

/** Silence kept before speech for a new engine, in case the detector missed its beginning. */
const keptSilenceMs = 2_000

/** Resolves when an engine is ready to receive audio; rejects with an `EngineError`. */
export async function openRecognition(
  deps: RecognitionDeps,
  options: RecognitionOptions,
): Promise<Recognition> {
  const { language, engineName, vocabulary, endpointingMs, signal } = options
  const request = {
    pool: deps.pool,
    choice: { language, engineName, avoid: null },
    options: { language, vocabulary, endpointingMs },
  }
  const connection = await openEngineConnection(request, signal)
  return new Recognition(connection, request, deps, options)
}

/**
 * Recognises the audio of one client session on one continuous timeline, across engine failures. It
 * limits the audio that an engine has not processed, keeps audio without a final for replay to a new
 * engine, and accounts for every millisecond. Times are milliseconds from the session's first sample.
 * Owns speech activity, ledger, latency and lag, transcripts, and the engine failover.
 */
export class Recognition {
  /** The first engine of the session. */
  readonly engine: Pick<Engine, 'name' | 'features'>
  /** The rate of the samples to write. It never changes, even if a later engine uses another. */
  readonly sampleRateHz: number
  readonly #options: RecognitionOptions
  readonly #settings: Config['speech']
  readonly #activity: SpeechActivity
  readonly #ledger: AudioLedger
  readonly #silence: SilenceDetector
  readonly #lag: LagMeter
  readonly #latency = new LatencyMeter()
  readonly #transcripts: TranscriptWriter
  readonly #failover: EngineFailover
  readonly #onAbort = () => void this.abort()
  #processedMs = 0
  #finalMs = 0
  #isEstimated = false
  #partialText = ''
  /** The end of the last final is our estimate. */
  #isEndEstimated = false
  #isEnding = false
  #isOver = false
  #finalizeTimer: Timer | undefined

  constructor(
    connection: EngineConnection,
    request: EngineRequest,
    deps: RecognitionDeps,
    options: RecognitionOptions,
  ) {
    const { settings } = deps
    const { sampleRateHz } = connection.engine
    this.engine = connection.engine
    this.sampleRateHz = sampleRateHz
    this.#options = options
    this.#settings = settings
    this.#activity = new SpeechActivity(sampleRateHz)
    this.#ledger = new AudioLedger(this.#activity.spans)
    this.#silence = new SilenceDetector(settings.muteMs, this.#activity.spans)
    this.#lag = new LagMeter(options.live, settings.lagMsMax)
    this.#transcripts = new TranscriptWriter(options, (event) => this.#emit(event))
    this.#failover = new EngineFailover(
      connection,
      { ...deps, request, activity: this.#activity, ledger: this.#ledger },
      {
        received: (event) => this.#onEvent(event),
        flushed: (untilMs) => this.#onFlushed(untilMs),
        restarted: (atMs) => this.#onRestarted(atMs),
        emit: (event) => this.#emit(event),
        ended: () => this.#onEnded(),
        failed: (reason) => this.#fail(reason === 'stalled' ? 'engine_stalled' : 'engine_failed'),
      },
    )
    options.signal.addEventListener('abort', this.#onAbort, { once: true })
    if (options.signal.aborted) this.abort()
  }

  /** Milliseconds of audio that may be written now; 0: wait for the `writable` event. */
  writableMs(): number {
    return this.#isEnding || this.#isOver ? 0 : this.#failover.writableMs()
  }

  /** Writes at most `writableMs` of audio, plus one piece. */
  write(samples: Int16Array): void {
    if (this.#isEnding || this.#isOver || samples.length === 0) return
    this.#activity.write(samples)
    const receivedMs = this.#activity.receivedMs()
    this.#latency.wrote(receivedMs)
    this.#lag.wrote(receivedMs)
    this.#failover.write(samples)
    this.#lag.setWritable(this.#failover.writableMs() > 0)
    this.#dropSettled()
  }

  /** Requests finals of all audio written so far, then `finalized` with this id. May be queued. */
  finalize(id: string): void {
    if (!this.#isEnding && !this.#isOver) this.#failover.finalize(id)
  }

  /** Marks the end of the audio: the remaining finals follow, then `ended`. */
  end(): void {
    if (this.#isEnding || this.#isOver) return
    this.#isEnding = true
    const expire = () => this.#fail('finalize_timeout')
    this.#finalizeTimer = setTimeout(expire, this.#settings.finalizeMs)
    this.#failover.end()
  }

  /** Ends the recognition immediately; no event follows. Returns the statistics so far. */
  abort(): RecognitionStats {
    this.#stop()
    return this.stats()
  }

  progress(): RecognitionProgress {
    const receivedMs = this.#activity.receivedMs()
    const pendingFromMs = this.#ledger.pendingFromMs() ?? Number.POSITIVE_INFINITY
    const knownMs = this.#isEnding ? receivedMs : this.#activity.knownMs()
    const silentUntilMs = Math.min(pendingFromMs, knownMs)
    this.#finalMs = Math.max(this.#finalMs, this.#ledger.settledMs, silentUntilMs)
    return { receivedMs, processedMs: this.#processedMs, finalMs: this.#finalMs }
  }

  stats(): RecognitionStats {
    const { sessions, engine } = this.#failover
    const { silenceMs, untranscribedMs, gaps } = this.#ledger.totals(this.#activity.receivedMs())
    return {
      ...this.progress(),
      silenceMs,
      untranscribedMs,
      gaps,
      processedIsEstimated: this.#isEstimated,
      ...this.#transcripts.counts(),
      lagMsMax: this.#lag.lagMsMax,
      engine: { name: engine.name, sessions, rollovers: sessions - 1 },
      latencyMs: this.#latency.summary(),
    }
  }

  #onEvent(event: EngineEvent): void {
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
        this.#transcripts.start(Math.max(event.atMs, this.#ledger.settledMs))
        break
      case 'progress':
        this.#isEstimated ||= event.estimated
        break
      default:
    }
    this.#onProgress(event.type === 'final')
  }

  #onPartial(partial: Partial): void {
    const { startMs, endMs } = this.#estimateSpan(partial)
    // A repeated partial is not new text.
    if (partial.text !== this.#partialText) {
      this.#silence.textReturned(this.#failover.processedMs() ?? 0)
    }
    this.#partialText = partial.text
    this.#latency.partial(endMs)
    this.#transcripts.partial({ text: partial.text, startMs, endMs })
  }

  #onFinal(final: Final): void {
    const { startMs, endMs, isEstimated } = this.#estimateSpan(final)
    const { text, speechFinal, confidence } = final
    const words = final.words.map((word) => clampWord(word, startMs, endMs))
    const fromFinalize = this.#failover.sender.finalizingId()
    this.#ledger.addFinal(startMs, endMs, speechFinal)
    this.#isEndEstimated = isEstimated
    this.#partialText = ''
    this.#silence.textReturned(this.#failover.processedMs() ?? endMs)
    this.#latency.final(endMs)
    const transcript = { text, startMs, endMs, speechFinal, confidence, words }
    this.#transcripts.final({ ...transcript, fromFinalize })
  }

  #estimateSpan(span: Partial | Final): EstimatedSpan {
    const bounds = {
      fromMs: this.#ledger.settledMs,
      processedMs: this.#failover.processedMs() ?? this.#processedMs,
      sentMs: this.#failover.sentMs(),
      endpointingMs: this.#options.endpointingMs,
    }
    return estimateSpan(span, bounds, this.#activity.spans)
  }

  #onProgress(hasFinal: boolean): void {
    const processedMs = this.#failover.processedMs()
    if (processedMs === null) return
    const hasAdvanced = processedMs > this.#processedMs
    this.#processedMs = Math.max(this.#processedMs, processedMs)
    this.#dropSettled()
    if (hasAdvanced || hasFinal) this.#emit({ type: 'progress' })
    const lagMs = this.#lag.check(this.#activity.receivedMs(), processedMs)
    if (lagMs !== null) this.#emit(warning('engine_lagging', { lag_ms: lagMs }))
    const { partials } = this.#failover.engine.features
    const silent = this.#silence.check(processedMs, partials, this.#isEstimated)
    if (silent === null) return
    const isReplaced = !silent.isConfirmed && this.#failover.mayReplace()
    this.#emit(engineMute(silent, isReplaced))
    if (isReplaced) this.#failover.replace('mute')
  }

  /** An engine without times has returned all text before this time. */
  #onFlushed(untilMs: number): void {
    if (this.#isEndEstimated) this.#ledger.addFinal(this.#ledger.settledMs, untilMs, true)
    this.#isEndEstimated = false
  }

  #onRestarted(atMs: number): void {
    this.#isEndEstimated = false
    this.#silence.restart(atMs)
  }

  #onEnded(): void {
    this.#processedMs = this.#activity.receivedMs()
    this.#finish((stats) => ({ type: 'ended', stats }))
  }

  /** Releases settled audio; silence is kept only if the engine has found text in it. */
  #dropSettled(): void {
    const settledMs = this.#ledger.settledMs
    const speechFromMs = this.#ledger.pendingFromMs() ?? this.#activity.receivedMs()
    const keepsSilence = this.#transcripts.isOpen
    const silentUntilMs = Math.max(settledMs, speechFromMs - keptSilenceMs)
    this.#failover.sender.dropBefore(keepsSilence ? settledMs : silentUntilMs)
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
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    this.#transcripts.stop()
    this.#failover.close()
  }

  #emit(event: RecognitionEvent): void {
    if (this.#isOver) return
    if (event.type === 'writable') this.#lag.setWritable(true)
    this.#options.listener(event)
  }
}
