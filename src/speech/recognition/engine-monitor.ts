import type { Config } from '#config/schema.ts'
import { LagMeter, LatencyMeter } from './latency.ts'
import { SilenceDetector, type SilentSpeech, type SpeechActivity } from './speech-activity.ts'

/** Speech that follows a text within this time may belong to it. */
const textDelayMsMin = 1_000

/** Measures how the engines of one session keep up with its audio: lag, latency and missing text. */
export class EngineMonitor {
  readonly #activity: SpeechActivity
  readonly #lag: LagMeter
  readonly #latency = new LatencyMeter()
  readonly #silence: SilenceDetector
  /** How late the newest text was, if the engine does not report its progress. */
  #textDelayMs = 0

  constructor(activity: SpeechActivity, isLive: boolean, { lagMsMax, muteMs }: Config['speech']) {
    this.#activity = activity
    this.#lag = new LagMeter(isLive, lagMsMax)
    this.#silence = new SilenceDetector(muteMs, activity.spans)
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
  checkSilence(
    processedMs: number,
    hasPartials: boolean,
    isEstimated: boolean,
  ): SilentSpeech | null {
    return this.#silence.check(processedMs, hasPartials, isEstimated)
  }

  summary() {
    return { lagMsMax: this.#lag.lagMsMax, latencyMs: this.#latency.summary() }
  }
}
