import type { Gap } from './recognition-events.ts'
import type { SpeechMap } from './speech-map.ts'

/**
 * What became of every millisecond: covered by a final, silence, or untranscribed; never two of
 * them. Finals come in order, so all before the newest one is settled and only sums are kept of it.
 * Times are whole milliseconds of the session.
 */
export type Ledger = {
  /** Until here everything is settled. */
  edgeMs(): number
  /** `pausedAfter`: the speaker paused at its end, so what still sounds there belongs to it. */
  addFinal(startMs: number, endMs: number, pausedAfter: boolean): void
  /** Nobody will transcribe what comes before this time: returns the speech in it. */
  giveUp(untilMs: number): readonly Gap[]
  /** Where speech begins that has no final; null where there is none. */
  pendingFromMs(): number | null
  totals(receivedMs: number): LedgerTotals
}

type LedgerTotals = {
  readonly coveredMs: number
  readonly silenceMs: number
  readonly untranscribedMs: number
  /** The first `gapsMax` of them. */
  readonly gaps: readonly Gap[]
}

const gapsMax = 100
/** What still sounds for so long after a final is the end of its last word, */
const afterPauseMs = 200
/** and after a final amid speech it is only that speech is heard in coarse steps. */
const afterCutMs = 40
/** So much before a final is the beginning of its first word. */
const beforeMs = 400

/** The speech of a span, told apart; the rest of the span is silence. */
type Judgement = { readonly coveredMs: number; readonly gaps: readonly Gap[] }

export function createLedger(speech: SpeechMap): Ledger {
  let edgeMs = 0
  let soundsOnMs = 0
  /** The speech before the edge was given up. */
  let hasLost = false
  let coveredMs = 0
  let silenceMs = 0
  let untranscribedMs = 0
  const gaps: Gap[] = []

  // What is left of speech that was given up was not heard as what it was.
  const goesOnFromLoss = (span: Gap) => hasLost && span.startMs === edgeMs
  const judge = (untilMs: number, precedesFinal: boolean): Judgement => {
    let covered = 0
    const missing: Gap[] = []
    for (const span of speech.within(edgeMs, untilMs)) {
      const lengthMs = span.endMs - span.startMs
      const allowedMs =
        (span.startMs === edgeMs ? soundsOnMs : 0) +
        (precedesFinal && span.endMs === untilMs && !goesOnFromLoss(span) ? beforeMs : 0)
      if (lengthMs <= allowedMs) covered += lengthMs
      else missing.push(span)
    }
    return { coveredMs: covered, gaps: missing }
  }
  const settle = (untilMs: number, precedesFinal: boolean): readonly Gap[] => {
    const judged = judge(untilMs, precedesFinal)
    const missingMs = lengthOf(judged.gaps)
    coveredMs += judged.coveredMs
    untranscribedMs += missingMs
    silenceMs += untilMs - edgeMs - judged.coveredMs - missingMs
    for (const gap of judged.gaps) addGap(gaps, gap)
    edgeMs = untilMs
    speech.dropBefore(edgeMs)
    return judged.gaps
  }

  return {
    edgeMs: () => edgeMs,
    addFinal(startMs, endMs, pausedAfter) {
      settle(Math.max(edgeMs, startMs), true)
      const end = Math.max(edgeMs, endMs)
      coveredMs += end - edgeMs
      edgeMs = end
      soundsOnMs = pausedAfter ? afterPauseMs : afterCutMs
      hasLost = false
      speech.dropBefore(edgeMs)
    },
    giveUp(untilMs) {
      if (untilMs <= edgeMs) return []
      const missing = settle(untilMs, false)
      soundsOnMs = 0
      hasLost = missing.at(-1)?.endMs === untilMs
      return missing
    },
    pendingFromMs() {
      const [first, second] = speech.within(edgeMs, Number.POSITIVE_INFINITY)
      if (first === undefined) return null
      const soundsOn =
        first.startMs === edgeMs &&
        first.endMs - edgeMs <= soundsOnMs &&
        !speech.isGoingOnAt(first.endMs)
      return soundsOn ? (second?.startMs ?? null) : first.startMs
    },
    totals(receivedMs) {
      const untilMs = Math.max(edgeMs, receivedMs)
      const pending = judge(untilMs, false)
      const missingMs = lengthOf(pending.gaps)
      const told = [...gaps]
      for (const gap of pending.gaps) addGap(told, gap)
      return {
        coveredMs: coveredMs + pending.coveredMs,
        silenceMs: silenceMs + untilMs - edgeMs - pending.coveredMs - missingMs,
        untranscribedMs: untranscribedMs + missingMs,
        gaps: told,
      }
    },
  }
}

function addGap(gaps: Gap[], gap: Gap): void {
  const last = gaps.at(-1)
  if (last?.endMs === gap.startMs) gaps.splice(-1, 1, { ...last, endMs: gap.endMs })
  else if (gaps.length < gapsMax) gaps.push(gap)
}

function lengthOf(gaps: readonly Gap[]): number {
  return gaps.reduce((sum, gap) => sum + gap.endMs - gap.startMs, 0)
}
