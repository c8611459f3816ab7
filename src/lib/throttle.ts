/**
 * Limits the calls of `notify` to one per `everyMs`. The first event is reported immediately; each
 * call passes the number of events since the previous one.
 */
export function throttle(everyMs: number, notify: (count: number) => void): () => void {
  let notifiedAt = Number.NEGATIVE_INFINITY
  let count = 0
  return () => {
    count++
    if (performance.now() - notifiedAt < everyMs) return
    notifiedAt = performance.now()
    notify(count)
    count = 0
  }
}
