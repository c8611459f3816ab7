import { Watchdog } from '#lib/deadline.ts'
import type { AudioGap } from '#speech/decoders/decoder.ts'
import type { Engine, EngineEvent, Span } from '#speech/engine.ts'
import type { EngineConnection, EngineRequest } from './engine-connection.ts'
import { EngineFailover } from './engine-failover.ts'
import { EngineMonitor } from './engine-monitor.ts'
import { AudioLedger } from './ledger.ts'
import type {
  RecognitionDeps,
  RecognitionEvent,
  RecognitionFailure,
  RecognitionOptions,
  RecognitionProgress,
  RecognitionStats,
} from './recognition.ts'
import { SourceTimeline } from './source-timeline.ts'
import { clampWord, type EstimatedSpan, estimateSpan, SpeechActivity } from './speech-activity.ts'
import { TranscriptWriter } from './transcript-writer.ts'
import { audioMissing, engineMute, warning } from './warnings.ts'

type Final = Extract<EngineEvent, { type: 'final' }>

/**
 * Recognises the audio of one client session on one continuous timeline, across engine failures. It
 * limits the audio that an engine has not processed, keeps audio without a final for replay to a new
 * engine, and accounts for every millisecond. Times are milliseconds from the session's first sample.
 * Owns speech activity, ledger, monitor, transcripts, and the engine failover.
 */
export class Recognition {
  /** The first engine of the session. */
  readonly engine: Pick<Engine, 'name' | 'features' | 'notice'>
  /** The rate of the samples to write. It never changes, even if a later engine uses another. */
  readonly sampleRateHz: number
  readonly #options: RecognitionOptions
  readonly #finalizeMs: number
  readonly #activity: SpeechActivity
  readonly #ledger: AudioLedger
  readonly #monitor: EngineMonitor
  readonly #transcripts: TranscriptWriter
  readonly #failover: EngineFailover
  readonly #timeline = new SourceTimeline()
  readonly #onAbort = () => void this.abort()
  #processedMs = 0
  #isEstimated = false
  #partialText = ''
  /** The end of the last final is our estimate. */
  #isEndEstimated = false
  #isEnding = false
  #isOver = false
  /** After the client's end, progress is due within `finalizeMs`. */
  #finals: Watchdog | null = null

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
    this.#finalizeMs = settings.finalizeMs
    this.#activity = new SpeechActivity(sampleRateHz)
    this.#ledger = new AudioLedger(this.#activity.spans)
    this.#monitor = new EngineMonitor(this.#activity, options.live, settings)
    this.#transcripts = new TranscriptWriter(options, (event) => this.#emit(event))
    this.#failover = new EngineFailover(
      connection,
      { ...deps, request, activity: this.#activity, ledger: this.#ledger },
      {
        received: (event) => this.#onEvent(event),
        flushed: (untilMs) => this.#onFlushed(untilMs),
        needsFinals: (connection) => this.#monitor.needsFinals(connection, this.#failover.sender),
        restarted: (atMs) => {
          this.#isEndEstimated = false
          this.#monitor.restarted(atMs)
        },
        emit: (event) => this.#emit(event),
        ended: () => {
          this.#processedMs = this.#activity.receivedMs()
          this.#finish((stats) => ({ type: 'ended', stats }))
        },
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
    this.#monitor.wrote()
    this.#failover.write(samples)
    this.#monitor.setWritable(this.#failover.writableMs() > 0)
    this.#dropSettled()
  }

  /** Audio is missing; the silence in its place is written next. */
  addGap(gap: AudioGap): void {
    const lost = this.#timeline.addGap(this.#activity.receivedMs(), gap)
    this.#ledger.addLost(lost)
    this.#emit(audioMissing(lost))
  }

  /** Requests finals of all audio written so far, then `finalized` with this id. May be queued. */
  finalize(id: string): void {
    if (!this.#isEnding && !this.#isOver) this.#failover.finalize(id)
  }

  /** The client sends no more: a period of `finalizeMs` without progress fails the recognition. */
  expectFinals(): void {
    if (this.#finals !== null || this.#isOver) return
    this.#finals = new Watchdog(this.#finalizeMs, () => this.#fail('finalize_timeout'))
    this.#finals.begin()
  }

  /** Marks the end of the audio: the remaining finals follow, then `ended`. */
  end(): void {
    if (this.#isEnding || this.#isOver) return
    this.#isEnding = true
    this.expectFinals()
    this.#failover.end()
  }

  /** Whether the speaker pauses. */
  isQuiet(): boolean {
    return this.#activity.isQuietAt(this.#activity.receivedMs())
  }

  /** Measures the lag. Called periodically: an engine that does not respond emits no event. */
  checkLag(): void {
    if (this.#isOver) return
    const lagMs = this.#monitor.checkLag(this.#failover.processedMs() ?? this.#processedMs)
    if (lagMs !== null) this.#emit(warning('engine_lagging', { lag_ms: lagMs }))
  }

  /** Ends the recognition immediately; no event follows. Returns the statistics so far. */
  abort(): RecognitionStats {
    this.#stop()
    return this.stats()
  }

  progress(): RecognitionProgress {
    const receivedMs = this.#activity.receivedMs()
    const finalMs = this.#ledger.finalUntilMs(
      this.#isEnding ? receivedMs : this.#activity.knownMs(),
    )
    return this.#timeline.progress({ receivedMs, processedMs: this.#processedMs, finalMs })
  }

  stats(): RecognitionStats {
    const { sessions, engine } = this.#failover
    return {
      ...this.progress(),
      ...this.#timeline.totals(this.#ledger.totals(this.#activity.receivedMs())),
      processedIsEstimated: this.#isEstimated,
      ...this.#transcripts.counts(),
      engine: { name: engine.name, sessions, rollovers: sessions - 1 },
      ...this.#monitor.summary(),
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
      case 'alive':
        this.#finals?.extend()
        return
      default:
    }
    this.#onProgress(event.type === 'final')
  }

  #onPartial(partial: Span): void {
    const { startMs, endMs } = this.#estimateSpan(partial)
    // A repeated partial is not new text.
    if (partial.text !== this.#partialText) this.#onText(endMs)
    this.#partialText = partial.text
    this.#monitor.partial(endMs)
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
    this.#onText(endMs)
    this.#monitor.final(endMs)
    this.#transcripts.final({ text, startMs, endMs, speechFinal, confidence, words, fromFinalize })
  }

  /** The engine returned new text for the audio before this time. */
  #onText(endMs: number): void {
    this.#finals?.begin()
    const processedMs = this.#failover.processedMs() ?? endMs
    this.#monitor.textReturned(endMs, processedMs, this.#isEstimated)
  }

  #estimateSpan(span: Span | Final): EstimatedSpan {
    const bounds = {
      fromMs: this.#ledger.settledMs,
      processedMs: this.#failover.processedMs() ?? this.#processedMs,
      sentMs: this.#failover.sender.sentMs(),
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
    if (hasAdvanced) this.#finals?.begin()
    if (hasAdvanced || hasFinal) this.#emit({ type: 'progress' })
    this.checkLag()
    const { finalize, partials } = this.#failover.engine.features
    const silent = finalize ? null : this.#monitor.checkSilence(processedMs, partials)
    if (this.#isReplaced(silent)) this.#failover.replaceMute()
  }

  /** The engine has returned all text before this time. Returns whether it works. */
  #onFlushed(untilMs: number): boolean {
    this.#finals?.begin()
    if (this.#isEndEstimated) this.#ledger.addFinal(this.#ledger.settledMs, untilMs, true)
    this.#isEndEstimated = false
    const silent = this.#monitor.checkFlush(untilMs, this.#ledger.settledMs, this.#failover.sender)
    if (this.#isReplaced(silent)) return false
    if (this.#monitor.isFull(this.#failover.sender)) this.#ledger.writeOff(untilMs)
    this.#dropSettled()
    return true
  }

  /** Whether an engine that returned no text for this speech is replaced. */
  #isReplaced(silent: Parameters<typeof engineMute>[0] | null): boolean {
    if (silent === null) return false
    const isReplaced = !silent.isConfirmed && this.#failover.mayReplace()
    this.#emit(engineMute(silent, isReplaced))
    return isReplaced
  }

  /** Releases audio that no further engine needs. */
  #dropSettled(): void {
    const fromMs = this.#ledger.neededFromMs(this.#activity.receivedMs(), this.#transcripts.isOpen)
    this.#failover.sender.dropBefore(fromMs)
  }

  #fail(code: RecognitionFailure): void {
    this.#finish((stats) => ({ type: 'failed', code, stats }))
  }

  #finish(ending: (stats: RecognitionStats) => RecognitionEvent): void {
    if (this.#isOver) return
    this.checkLag()
    this.#stop()
    this.#options.listener(ending(this.stats()))
  }

  #stop(): void {
    this.#isOver = true
    this.#finals?.stop()
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    this.#transcripts.stop()
    this.#failover.close()
  }

  #emit(event: RecognitionEvent): void {
    if (this.#isOver) return
    if (event.type === 'writable') this.#monitor.setWritable(true)
    this.#options.listener(this.#timeline.event(event))
  }
}
