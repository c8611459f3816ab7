/**
 * For what may happen any number of times: calls `tell` at once and then once in `everyMs` at most,
 * with how many times it happened since.
 */
export function throttle(everyMs: number, tell: (times: number) => void): () => void {
  let toldAt = Number.NEGATIVE_INFINITY
  let times = 0
  return () => {
    times++
    if (performance.now() - toldAt < everyMs) return
    toldAt = performance.now()
    tell(times)
    times = 0
  }
}
