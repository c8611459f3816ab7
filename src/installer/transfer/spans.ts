/** Half-open: the byte at `end` is not part of it. */
export type Span = readonly [start: number, end: number]

/** Which bytes of a file there are: sorted, apart from each other, never empty. */
export type Spans = {
  readonly list: () => readonly Span[]
  readonly bytes: () => number
  /** Up to where everything is there. */
  readonly prefixEnd: () => number
  add(start: number, end: number): void
  clear(): void
}

/** `given` may be in any order and overlap. */
export function createSpans(given: readonly Span[]): Spans {
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
  for (const [start, end] of given) add(start, end)
  return {
    list: () => spans,
    bytes: () => spans.reduce((sum, [start, end]) => sum + end - start, 0),
    prefixEnd() {
      const [first] = spans
      return first?.[0] === 0 ? first[1] : 0
    },
    add,
    clear() {
      spans = []
    },
  }
}

/** The first bytes before `until` that are in none of the spans; null: there are none. */
export function firstGap(spans: readonly Span[], until: number): Span | null {
  let at = 0
  for (const [start, end] of spans.toSorted(([a], [b]) => a - b)) {
    if (start > at) break
    at = Math.max(at, end)
  }
  if (at >= until) return null
  const next = spans.filter(([start]) => start > at).map(([start]) => start)
  return [at, Math.min(until, ...next)]
}
