/** Marks of when audio was captured; enough for two minutes. */
const marksMax = 2_400
const samplesMax = 500

type Summary = { readonly latest: number; readonly median: number; readonly p95: number }

/** The time from the end of a word to its text on the page. */
export function createLatency() {
  const marks: { readonly capturedMs: number; readonly at: number }[] = []
  const measured: Record<'partial' | 'final', number[]> = { partial: [], final: [] }
  return {
    /** Audio up to this position was captured now. */
    captured(capturedMs: number, at: number): void {
      marks.push({ capturedMs, at })
      if (marks.length > marksMax) marks.shift()
    },
    shown(kind: 'partial' | 'final', endMs: number, at: number): void {
      const mark = marks.find(({ capturedMs }) => capturedMs >= endMs)
      if (mark === undefined) return
      // The mark is the end of a piece; the word may end within it.
      measured[kind].push(Math.max(0, at - (mark.at - (mark.capturedMs - endMs))))
      if (measured[kind].length > samplesMax) measured[kind].shift()
    },
    summary(kind: 'partial' | 'final'): Summary | null {
      const all = measured[kind]
      const sorted = all.toSorted((one, other) => one - other)
      const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? 0
      const latest = all.at(-1)
      return latest === undefined ? null : { latest, median: at(0.5), p95: at(0.95) }
    },
  }
}
