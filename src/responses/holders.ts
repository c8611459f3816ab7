/** Counts who is interested in something, and tells when nobody has been for a while. */
export type Holders = {
  /** Counts one more, until it is let go of. */
  hold(): () => void
  stop(): void
}

export function countHolders(abandonMs: () => number, abandoned: () => void): Holders {
  let count = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false
  const wait = () => {
    if (stopped) return
    timer = setTimeout(abandoned, abandonMs())
    timer.unref()
  }
  wait()
  return {
    hold() {
      let held = true
      count += 1
      clearTimeout(timer)
      return () => {
        if (!held) return
        held = false
        count -= 1
        if (count === 0) wait()
      }
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
