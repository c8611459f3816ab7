/** How long after its audio was written a text comes, in milliseconds. */
export type LatencyMeter = {
  wrote(receivedMs: number): void
  /** Of the first one only. */
  partial(endMs: number): void
  final(endMs: number): void
  summary(): {
    readonly firstPartial: number | null
    readonly finalP50: number | null
    readonly finalP95: number | null
  }
}

/** When which audio came, in steps of the clock, for about the last half minute. */
const stepMs = 50
const marksMax = 600
/** The newest finals that the summary is about. */
const finalsMax = 512

export function createLatencyMeter(): LatencyMeter {
  const marks: { receivedMs: number; readonly at: number }[] = []
  const finals: number[] = []
  let finalsSeen = 0
  let forgottenMs = 0
  let firstPartial: number | null = null

  const dropFirst = () => {
    forgottenMs = marks.shift()?.receivedMs ?? forgottenMs
  }
  const since = (endMs: number) => {
    if (endMs <= forgottenMs) return null
    const mark = marks.find(({ receivedMs }) => receivedMs >= endMs)
    return mark === undefined ? null : Math.max(0, Math.round(performance.now() - mark.at))
  }
  const percentile = (sorted: readonly number[], share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null

  return {
    wrote(receivedMs) {
      const last = marks.at(-1)
      const at = performance.now()
      if (last !== undefined && at - last.at < stepMs) last.receivedMs = receivedMs
      else marks.push({ receivedMs, at })
      if (marks.length > marksMax) dropFirst()
    },
    partial(endMs) {
      firstPartial ??= since(endMs)
    },
    final(endMs) {
      const latencyMs = since(endMs)
      while ((marks[0]?.receivedMs ?? endMs) < endMs) dropFirst()
      if (latencyMs === null) return
      finals[finalsSeen % finalsMax] = latencyMs
      finalsSeen += 1
    },
    summary() {
      const sorted = finals.toSorted((one, other) => one - other)
      return {
        firstPartial,
        finalP50: percentile(sorted, 0.5),
        finalP95: percentile(sorted, 0.95),
      }
    },
  }
}
