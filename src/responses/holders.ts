/** Counts who is interested in something, and tells when nobody has been for a while. */
export type Holders = {
  /** Counts one more, until it is let go of. */
  hold(): () => void
  stop(): void
}

export function countHolders(
  /** `firstMs`: for somebody to come at all; `nextMs`: for somebody to come back. */
  patience: { firstMs: number; nextMs: () => number },
  abandoned: () => void,
): Holders {
  let count = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false
  const wait = (ms: number) => {
    if (stopped) return
    timer = setTimeout(abandoned, ms)
    timer.unref()
  }
  wait(patience.firstMs)
  return {
    hold() {
      let held = true
      count += 1
      clearTimeout(timer)
      return () => {
        if (!held) return
        held = false
        count -= 1
        if (count === 0) wait(patience.nextMs())
      }
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
