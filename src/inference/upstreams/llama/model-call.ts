import type { AppError } from '#lib/errors.ts'
import type { Ending, Piece } from './wire.ts'

/** The output of a call since the last read, and its ending once it has ended. */
type CallProgress = {
  readonly hasBegun: boolean
  readonly pieces: readonly Piece[]
  readonly ending: Ending | null
}

/** The gateway's side of a generation or a token count in a model process. */
export type ModelCall = {
  /**
   * Resolves with the next output, and acknowledges it to the process. Rejects with the signal's
   * reason, or with an `AppError` when the process exited.
   */
  take(signal: AbortSignal): Promise<CallProgress>
  /** Cancels the call. */
  stop(): void
  /** Resolves when the process has released the call's sequence. */
  readonly released: Promise<void>
}

/** Called with the messages of the process. */
export type ModelCallEvents = {
  begin(): void
  add(piece: Piece): void
  end(ending: Ending): void
  fail(error: AppError): void
}

export function createModelCall(process: {
  /** Sends an acknowledgement of this many pieces. */
  acknowledge(pieces: number): void
  stop(): void
  /** The call did not stop within `releaseMs`. */
  onStuck(): void
  releaseMs: number
}): ModelCall & ModelCallEvents {
  const over = Promise.withResolvers<void>()
  let pieces: Piece[] = []
  let hasBegun = false
  let isBeginUnread = false
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
  const hasOutput = () => isOver || isBeginUnread || pieces.length > 0
  return {
    released: over.promise,
    async take(signal) {
      const stopWaiting = () => wake()
      signal.addEventListener('abort', stopWaiting, { once: true })
      while (!hasOutput() && !signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      signal.removeEventListener('abort', stopWaiting)
      signal.throwIfAborted()
      // Output that precedes the failure is returned first.
      if (pieces.length === 0 && failure !== null) throw failure
      const taken = pieces
      pieces = []
      isBeginUnread = false
      if (taken.length > 0 && !isOver) process.acknowledge(taken.length)
      return { hasBegun, pieces: taken, ending }
    },
    stop() {
      if (isOver || stuckTimer !== undefined) return
      stuckTimer = setTimeout(process.onStuck, process.releaseMs)
      process.stop()
    },
    begin() {
      hasBegun = true
      isBeginUnread = true
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
