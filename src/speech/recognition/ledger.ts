import type { RecognitionStats, TimeSpan } from './recognition.ts'
import { type SpeechSpans, totalMs } from './speech-activity.ts'

type LedgerTotals = Pick<RecognitionStats, 'silenceMs' | 'untranscribedMs' | 'gaps'> & {
  readonly coveredMs: number
}

/** Speech of a span, classified; the rest of the span is silence. */
type ClassifiedSpan = { readonly coveredMs: number; readonly gaps: readonly TimeSpan[] }

/** Further gaps only count in the sums. */
const gapsMax = 100
/** Shorter speech without a final is the end of a word whose times are inexact. */
const missingMsMin = 500
/** Silence kept before speech for a new engine, in case the detector missed its beginning. */
const keptSilenceMs = 2_000
/** Sound of up to this length after a final with a pause is the end of its last word. */
const afterPauseMs = 200
/** After a final during speech only the detector's resolution is tolerated. */
const afterCutMs = 40
/** Sound of up to this length before a final is the beginning of its first word. */
const beforeMs = 400

/**
 * Accounts for every millisecond of a session: covered by a final, silence, or untranscribed, and
 * never two of them. Finals arrive in order, so only sums are kept before the newest one. Times are
 * whole milliseconds of the session.
 */
export class AudioLedger {
  /** All audio before this time is accounted for. */
  settledMs = 0
  readonly #speech: SpeechSpans
  readonly #gaps: TimeSpan[] = []
  /** What the source has lost, after the settled position. */
  #lost: readonly TimeSpan[] = []
  /** Audio before this time will not be needed again. */
  #finalMs = 0
  /** Sound after the settled position that still belongs to the last final. */
  #trailingMs = 0
  /** The speech before the settled position was lost. */
  #hasLost = false
  #coveredMs = 0
  #silenceMs = 0
  #untranscribedMs = 0

  constructor(speech: SpeechSpans) {
    this.#speech = speech
  }

  /** The source has lost this span, after all others; it is silence here, and never covered. */
  addLost(span: TimeSpan): void {
    this.#lost = [...this.#lost, span]
  }

  /** `pausedAfter`: the speaker paused at the end, so trailing sound belongs to this final. */
  addFinal(startMs: number, endMs: number, pausedAfter: boolean): void {
    this.#settle(Math.max(this.settledMs, startMs), true)
    const end = Math.max(this.settledMs, endMs)
    const lost = this.#takeLost(end)
    this.#coveredMs += end - this.settledMs - totalMs(lost)
    this.#addGaps(lost)
    this.settledMs = end
    this.#trailingMs = pausedAfter ? afterPauseMs : afterCutMs
    this.#hasLost = false
    this.#speech.dropBefore(end)
  }

  /** Marks the speech before this time as untranscribed and returns it. */
  writeOff(untilMs: number): readonly TimeSpan[] {
    if (untilMs <= this.settledMs) return []
    const missing = this.#settle(untilMs, false)
    this.#trailingMs = 0
    this.#hasLost = missing.at(-1)?.endMs === untilMs
    return missing
  }

  /** Where speech without a final starts; null if there is none. */
  pendingFromMs(): number | null {
    const [first, second] = this.#speech.within(this.settledMs, Number.POSITIVE_INFINITY)
    if (first === undefined) return null
    const isTrailing =
      first.startMs === this.settledMs &&
      first.endMs - this.settledMs <= this.#trailingMs &&
      !this.#speech.isInProgressAt(first.endMs)
    return isTrailing ? (second?.startMs ?? null) : first.startMs
  }

  /** Audio before this time is settled or known to be silence; `knownMs`: where speech is known. */
  finalUntilMs(knownMs: number): number {
    const silentUntilMs = Math.min(this.pendingFromMs() ?? knownMs, knownMs)
    this.#finalMs = Math.max(this.#finalMs, this.settledMs, silentUntilMs)
    return this.#finalMs
  }

  /** Audio before this time is settled, or silence in which no engine has found text. */
  neededFromMs(receivedMs: number, isTextOpen: boolean): number {
    if (isTextOpen) return this.settledMs
    return Math.max(this.settledMs, (this.pendingFromMs() ?? receivedMs) - keptSilenceMs)
  }

  /** Whether an engine that has returned all finals of this audio has omitted speech or cut it. */
  isSpeechMissing(untilMs: number): boolean {
    return totalMs(this.#speech.within(this.settledMs, untilMs)) >= missingMsMin
  }

  totals(receivedMs: number): LedgerTotals {
    const untilMs = Math.max(this.settledMs, receivedMs)
    const pending = this.#classify(untilMs, false)
    const missing = inOrder([...pending.gaps, ...clip(this.#lost, this.settledMs, untilMs)])
    const missingMs = totalMs(missing)
    const gaps = [...this.#gaps]
    for (const gap of missing) addGap(gaps, gap)
    return {
      coveredMs: this.#coveredMs + pending.coveredMs,
      silenceMs: this.#silenceMs + untilMs - this.settledMs - pending.coveredMs - missingMs,
      untranscribedMs: this.#untranscribedMs + missingMs,
      gaps,
    }
  }

  #classify(untilMs: number, precedesFinal: boolean): ClassifiedSpan {
    let coveredMs = 0
    const gaps: TimeSpan[] = []
    const speech = this.#speech.within(this.settledMs, untilMs)
    for (const span of without(speech, this.#lost)) {
      const isFirst = span.startMs === this.settledMs
      // The remainder of lost speech is not the beginning of the next final.
      const isLeading = precedesFinal && span.endMs === untilMs && !(this.#hasLost && isFirst)
      const toleratedMs = (isFirst ? this.#trailingMs : 0) + (isLeading ? beforeMs : 0)
      const lengthMs = span.endMs - span.startMs
      if (lengthMs <= toleratedMs) coveredMs += lengthMs
      else gaps.push(span)
    }
    return { coveredMs, gaps }
  }

  /** Returns the speech without a final. */
  #settle(untilMs: number, precedesFinal: boolean): readonly TimeSpan[] {
    const { coveredMs, gaps } = this.#classify(untilMs, precedesFinal)
    const missing = inOrder([...gaps, ...this.#takeLost(untilMs)])
    this.#coveredMs += coveredMs
    this.#silenceMs += untilMs - this.settledMs - coveredMs - totalMs(missing)
    this.#addGaps(missing)
    this.settledMs = untilMs
    this.#speech.dropBefore(untilMs)
    return gaps
  }

  /** What was lost from the settled position up to this time. */
  #takeLost(untilMs: number): readonly TimeSpan[] {
    const lost = clip(this.#lost, this.settledMs, untilMs)
    if (lost.length > 0) this.#lost = this.#lost.filter(({ endMs }) => endMs > untilMs)
    return lost
  }

  #addGaps(gaps: readonly TimeSpan[]): void {
    this.#untranscribedMs += totalMs(gaps)
    for (const gap of gaps) addGap(this.#gaps, gap)
  }
}

function clip(spans: readonly TimeSpan[], fromMs: number, untilMs: number): TimeSpan[] {
  return spans
    .map(({ startMs, endMs }) => ({
      startMs: Math.max(startMs, fromMs),
      endMs: Math.min(endMs, untilMs),
    }))
    .filter(({ startMs, endMs }) => startMs < endMs)
}

/** The parts of `spans` outside of `removed`. */
function without(spans: readonly TimeSpan[], removed: readonly TimeSpan[]): readonly TimeSpan[] {
  return removed.reduce(
    (rest, { startMs, endMs }) => [
      ...clip(rest, Number.NEGATIVE_INFINITY, startMs),
      ...clip(rest, endMs, Number.POSITIVE_INFINITY),
    ],
    spans,
  )
}

function inOrder(spans: readonly TimeSpan[]): readonly TimeSpan[] {
  return spans.toSorted((a, b) => a.startMs - b.startMs)
}

function addGap(gaps: TimeSpan[], gap: TimeSpan): void {
  const last = gaps.at(-1)
  if (last?.endMs === gap.startMs) gaps.splice(-1, 1, { ...last, endMs: gap.endMs })
  else if (gaps.length < gapsMax) gaps.push(gap)
}
