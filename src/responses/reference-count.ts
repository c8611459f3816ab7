/** Counts references and reports when none has been held for a while. */
export type ReferenceCount = {
  /** Adds a reference; the returned function releases it. */
  retain(): () => void
  /** Never reports again. */
  stop(): void
}

export function createReferenceCount(
  /** `firstMs`: wait for the first reference; `nextMs`: wait after the last one was released. */
  waits: { firstMs: number; nextMs: () => number },
  onUnused: () => void,
): ReferenceCount {
  let count = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false
  const startTimer = (ms: number) => {
    if (stopped) return
    timer = setTimeout(onUnused, ms)
    timer.unref()
  }
  startTimer(waits.firstMs)
  return {
    retain() {
      let held = true
      count += 1
      clearTimeout(timer)
      return () => {
        if (!held) return
        held = false
        count -= 1
        if (count === 0) startTimer(waits.nextMs())
      }
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
