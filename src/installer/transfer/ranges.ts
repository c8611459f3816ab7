/** A byte range; half-open: the byte at `end` is not part of it. */
export type Span = readonly [start: number, end: number]

/** The written bytes of a file: sorted, disjoint, non-empty spans. `initial` may be neither. */
export function createSpans(initial: readonly Span[]) {
  let spans: Span[] = []
  const add = (start: number, end: number) => {
    if (start >= end) return
    const apart = spans.filter(([from, to]) => to < start || from > end)
    const touching = spans.filter(([from, to]) => to >= start && from <= end)
    const joined: Span = [
      Math.min(start, ...touching.map(([from]) => from)),
      Math.max(end, ...touching.map(([, to]) => to)),
    ]
    spans = [...apart, joined].toSorted(([a], [b]) => a - b)
  }
  for (const [start, end] of initial) add(start, end)
  return {
    list: (): readonly Span[] => spans,
    bytes: () => spans.reduce((sum, [start, end]) => sum + end - start, 0),
    /** The end of the gapless prefix. */
    prefixEnd(): number {
      const [first] = spans
      return first?.[0] === 0 ? first[1] : 0
    },
    add,
    clear(): void {
      spans = []
    },
  }
}

/** The first gap before `until`; null for none. */
function firstGap(spans: readonly Span[], until: number): Span | null {
  let at = 0
  for (const [start, end] of spans.toSorted(([a], [b]) => a - b)) {
    if (start > at) break
    at = Math.max(at, end)
  }
  if (at >= until) return null
  const next = spans.filter(([start]) => start > at).map(([start]) => start)
  return [at, Math.min(until, ...next)]
}

/** The range that one connection fetches. */
export type Claim = {
  readonly start: number
  /** The end of what was received. */
  at: number
  /** Moves towards the start when another connection takes over the rest. */
  end: number
}

/** Smaller ranges are not worth a connection. */
const splitBytesMin = 1024 * 1024

/**
 * Distributes the missing ranges to connections, from the start of the file. When all are claimed,
 * an idle connection takes over half of the longest one.
 */
export function createClaims(written: () => readonly Span[], rangeBytes: number) {
  const claims = new Set<Claim>()
  const claim = (start: number, end: number) => {
    const taken = { start, at: start, end }
    claims.add(taken)
    return taken
  }
  return {
    /** The next range to fetch; null: all bytes are written or claimed. */
    take(fileBytes: number | null): Claim | null {
      const claimed = [...claims].map(({ start, end }): Span => [start, end])
      const until = fileBytes ?? Number.POSITIVE_INFINITY
      const gap = firstGap([...written(), ...claimed], until)
      if (gap !== null) return claim(gap[0], Math.min(gap[1], gap[0] + rangeBytes))
      const [longest] = [...claims].toSorted((a, b) => b.end - b.at - (a.end - a.at))
      if (longest === undefined || longest.end - longest.at < 2 * splitBytesMin) return null
      const { end } = longest
      longest.end = longest.at + Math.ceil((end - longest.at) / 2)
      return claim(longest.end, end)
    },
    release: (taken: Claim) => void claims.delete(taken),
    count: () => claims.size,
  }
}
