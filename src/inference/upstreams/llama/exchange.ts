import type { AppError } from '#lib/errors.ts'
import type { Ending, Piece } from './wire.ts'

/** What came of a prompt since it was last looked, and how it ended if it did. */
type Progress = {
  readonly hasBegun: boolean
  readonly pieces: readonly Piece[]
  readonly ending: Ending | null
}

/** A generation or a count in the process of a model, as seen from here. */
export type Exchange = {
  /**
   * Waits until there is something new, and takes it, which makes room for more. Rejects with the
   * signal's reason, or with an `AppError` when the process was lost.
   */
  take(signal: AbortSignal): Promise<Progress>
  /** Nothing of it is wanted any more. */
  stop(): void
  /** Resolves when the process has let go of it. */
  readonly over: Promise<void>
}

/** What the process says of it. */
export type ExchangeEnd = {
  begin(): void
  add(piece: Piece): void
  end(ending: Ending): void
  fail(error: AppError): void
}

export function createExchange(process: {
  /** Tells the process that so many pieces were taken. */
  taken(pieces: number): void
  stop(): void
  /** It was told to stop, and has not within `releaseMs`. */
  stuck(): void
  releaseMs: number
}): Exchange & ExchangeEnd {
  const over = Promise.withResolvers<void>()
  let pieces: Piece[] = []
  let hasBegun = false
  let begunUntold = false
  let ending: Ending | null = null
  let failure: AppError | null = null
  let isOver = false
  let wake = () => {}
  let stuckTimer: ReturnType<typeof setTimeout> | undefined

  const finish = () => {
    isOver = true
    clearTimeout(stuckTimer)
    over.resolve()
    wake()
  }
  const hasNews = () => isOver || begunUntold || pieces.length > 0
  return {
    over: over.promise,
    async take(signal) {
      const stopWaiting = () => wake()
      signal.addEventListener('abort', stopWaiting, { once: true })
      while (!hasNews() && !signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      signal.removeEventListener('abort', stopWaiting)
      signal.throwIfAborted()
      // What came before the loss is told first.
      if (pieces.length === 0 && failure !== null) throw failure
      const taken = pieces
      pieces = []
      begunUntold = false
      if (taken.length > 0 && !isOver) process.taken(taken.length)
      return { hasBegun, pieces: taken, ending }
    },
    stop() {
      if (isOver || stuckTimer !== undefined) return
      stuckTimer = setTimeout(process.stuck, process.releaseMs)
      process.stop()
    },
    begin() {
      hasBegun = true
      begunUntold = true
      wake()
    },
    add(piece) {
      pieces.push(piece)
      wake()
    },
    end(how) {
      ending = how
      finish()
    },
    fail(error) {
      failure = error
      finish()
    },
  }
}
