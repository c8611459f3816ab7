/** Lets values through at a bounded rate: the newest wins, and the last one always comes. */
export type PartialPacer<T> = {
  offer(value: T): void
  /** What waits is no longer wanted. */
  clear(): void
}

export function createPartialPacer<T>(
  perSecondMax: number,
  show: (value: T) => void,
): PartialPacer<T> {
  const gapMs = 1000 / perSecondMax
  let shownAt = Number.NEGATIVE_INFINITY
  let timer: ReturnType<typeof setTimeout> | undefined
  let newest: { readonly value: T } | null = null

  const showNewest = () => {
    timer = undefined
    const waiting = newest
    newest = null
    if (waiting === null) return
    shownAt = performance.now()
    show(waiting.value)
  }
  return {
    offer(value) {
      newest = { value }
      if (timer !== undefined) return
      const restMs = shownAt + gapMs - performance.now()
      if (restMs <= 0) showNewest()
      else timer = setTimeout(showNewest, restMs)
    },
    clear() {
      clearTimeout(timer)
      timer = undefined
      newest = null
    },
  }
}
