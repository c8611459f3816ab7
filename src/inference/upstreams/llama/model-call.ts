import type { CancelSignal } from '#lib/cancellation.ts'
import type { AppError } from '#lib/errors.ts'
import type { Ending, Piece } from './wire.ts'

type ModelCallOptions = {
  /** Sends an acknowledgement of this many pieces. */
  acknowledge(pieces: number): void
  stop(): void
  /** The call did not stop within `releaseMs`. */
  onStuck(): void
  releaseMs: number
}

/** The gateway's side of a generation or a token count in a model process, which reports its output. */
export class ModelCall {
  readonly #process: ModelCallOptions
  readonly #over = Promise.withResolvers<void>()
  /** Resolves when the process has released the call's sequence. */
  readonly released = this.#over.promise
  #pieces: Piece[] = []
  #hasBegun = false
  #isBeginUnread = false
  #ending: Ending | null = null
  #failure: AppError | null = null
  #isOver = false
  #wake = () => {}
  #stuckTimer: ReturnType<typeof setTimeout> | undefined

  constructor(process: ModelCallOptions) {
    this.#process = process
  }

  /**
   * Resolves with the output since the last read, and acknowledges it to the process; with the ending
   * once the call has ended. Rejects with the signal's reason, or with an `AppError` when the process
   * exited.
   */
  async take(signal: CancelSignal) {
    const stopWaiting = () => this.#wake()
    signal.addEventListener('abort', stopWaiting, { once: true })
    while (!this.#hasOutput() && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    signal.removeEventListener('abort', stopWaiting)
    signal.throwIfAborted()
    // Output that precedes the failure is returned first.
    if (this.#pieces.length === 0 && this.#failure !== null) throw this.#failure
    const pieces = this.#pieces
    this.#pieces = []
    this.#isBeginUnread = false
    if (pieces.length > 0 && !this.#isOver) this.#process.acknowledge(pieces.length)
    return { hasBegun: this.#hasBegun, pieces, ending: this.#ending }
  }

  /** Cancels the call. */
  stop() {
    if (this.#isOver || this.#stuckTimer !== undefined) return
    this.#stuckTimer = setTimeout(this.#process.onStuck, this.#process.releaseMs)
    this.#process.stop()
  }

  begin() {
    this.#hasBegun = true
    this.#isBeginUnread = true
    this.#wake()
  }

  add(piece: Piece) {
    this.#pieces.push(piece)
    this.#wake()
  }

  end(ending: Ending) {
    this.#ending = ending
    this.#finish()
  }

  fail(error: AppError) {
    this.#failure = error
    this.#finish()
  }

  #hasOutput() {
    return this.#isOver || this.#isBeginUnread || this.#pieces.length > 0
  }

  #finish() {
    this.#isOver = true
    clearTimeout(this.#stuckTimer)
    this.#over.resolve()
    this.#wake()
  }
}
