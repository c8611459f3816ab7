/** Counts the readers of a run, and calls `onAbandoned` when there was none for a time. */
export class ReaderCount {
  readonly #onAbandoned: () => void
  #count = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(onAbandoned: () => void) {
    this.#onAbandoned = onAbandoned
  }

  /** Without a reader this long from now, the run is abandoned. */
  expectWithin(ms: number): void {
    this.#timer = setTimeout(this.#onAbandoned, ms)
    this.#timer.unref()
  }

  /** Counts a reader until it is released, once; `waitMs`: how long after the last; null: forever. */
  retain(waitMs: () => number | null): () => void {
    this.#count += 1
    this.stop()
    return () => {
      this.#count -= 1
      const ms = this.#count === 0 ? waitMs() : null
      if (ms !== null) this.expectWithin(ms)
    }
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
