import type { Config } from '#config/schema.ts'
import type { AudioSender } from './audio-sender.ts'
import type { EngineConnection } from './engine-connection.ts'
import { LagMeter, LatencyMeter } from './latency.ts'
import {
  SilenceDetector,
  type SilentSpeech,
  type SpeechActivity,
  totalMs,
} from './speech-activity.ts'

/** From this share of `replayMsMax` without finals on, they are requested in a pause. */
const fullShare = 3 / 4
/** An engine that returns finals and omits speech of this share of `replayMsMax` has failed at it. */
const omittedShare = 1 / 4
/** Speech that follows a text within this time may belong to it. */
const textDelayMsMin = 1_000

/** Measures how the engines of one session keep up with its audio: lag, latency and missing text. */
export class EngineMonitor {
  readonly #activity: SpeechActivity
  readonly #lag: LagMeter
  readonly #latency = new LatencyMeter()
  readonly #silence: SilenceDetector
  readonly #replayMsMax: number
  /** How late the newest text was, if the engine does not report its progress. */
  #textDelayMs = 0
  /** Earlier speech was omitted by an engine before. */
  #omittedUntilMs = 0

  constructor(activity: SpeechActivity, isLive: boolean, settings: Config['speech']) {
    const { lagMsMax, muteMs, replayMsMax } = settings
    this.#activity = activity
    this.#lag = new LagMeter(isLive, lagMsMax)
    this.#silence = new SilenceDetector(muteMs, activity.spans)
    this.#replayMsMax = replayMsMax
  }

  /** Audio was received. */
  wrote(): void {
    const receivedMs = this.#activity.receivedMs()
    this.#latency.wrote(receivedMs)
    this.#lag.wrote(receivedMs)
  }

  setWritable(isWritable: boolean): void {
    this.#lag.setWritable(isWritable)
  }

  /** A new engine starts at this time of the session. */
  restarted(atMs: number): void {
    this.#silence.restart(atMs)
  }

  /** The engine returned new text for the audio before `endMs`. */
  textReturned(endMs: number, processedMs: number, isEstimated: boolean): void {
    this.#silence.textReturned(processedMs)
    if (!isEstimated) return
    const receivedMs = this.#activity.receivedMs()
    const [next] = this.#activity.spans.within(endMs + textDelayMsMin, receivedMs)
    this.#textDelayMs = next === undefined ? 0 : receivedMs - next.startMs
  }

  partial(endMs: number): void {
    this.#latency.partial(endMs)
  }

  final(endMs: number): void {
    this.#latency.final(endMs)
  }

  /** Returns an excessive lag, as `LagMeter.check`. */
  checkLag(processedMs: number): number | null {
    return this.#lag.check(this.#activity.receivedMs(), processedMs - this.#textDelayMs)
  }

  /** Returns speech without text, as `SilenceDetector.check`. */
  checkSilence(processedMs: number, hasPartials: boolean): SilentSpeech | null {
    return this.#silence.check(processedMs, hasPartials)
  }

  /**
   * Returns speech without text up to this time, for which the engine has returned all finals.
   * `settledMs`: where they end.
   */
  checkFlush(untilMs: number, settledMs: number, sender: AudioSender): SilentSpeech | null {
    const silent = this.checkSilence(untilMs, true)
    if (silent !== null || !this.isFull(sender)) return silent
    const spans = this.#activity.spans.within(settledMs, untilMs)
    const [first] = spans
    const speechMs = totalMs(spans)
    if (first === undefined || speechMs < this.#replayMsMax * omittedShare) return null
    const isConfirmed = settledMs < this.#omittedUntilMs
    this.#omittedUntilMs = untilMs
    return { startMs: first.startMs, endMs: untilMs, speechMs, isConfirmed }
  }

  /**
   * Whether to ask the engine for its finals before it receives more: it has returned no text for
   * much speech, or little more can be kept for replay. Its answer shows whether it is only slow.
   */
  needsFinals({ engine, processedMs }: EngineConnection, sender: AudioSender): boolean {
    const { partials, finalize } = engine.features
    if (!finalize) return false
    if (this.isFull(sender)) return true
    return this.#isQuiet(sender) && this.#silence.find(processedMs, partials) !== null
  }

  /** Whether finals must come soon, so that no audio without a final is dropped. */
  isFull(sender: AudioSender): boolean {
    const replayableMs = sender.replayableMs()
    if (replayableMs < this.#replayMsMax * fullShare) return false
    return replayableMs >= this.#replayMsMax || this.#isQuiet(sender)
  }

  /** A request for finals cuts no word here. */
  #isQuiet(sender: AudioSender): boolean {
    return this.#activity.isQuietAt(sender.sentMs())
  }

  summary() {
    return { lagMsMax: this.#lag.lagMsMax, latencyMs: this.#latency.summary() }
  }
}
