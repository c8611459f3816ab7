import { EngineError } from '#speech/engine.ts'

/** Audio that the measurement remembers; what is older counts half. */
const audioMsKept = 120_000
/** Audio of finals that may wait, in the time that it takes to process. */
const waitMsMax = 10_000

/**
 * The load of a model process. A session costs as much time per second of audio as the process needed for
 * a second of speech lately, so it is known before its first word whether it will be served in time.
 */
export class RecognitionLoad {
  readonly #loadMax: number
  #processMs = 0
  #audioMs = 0
  #sessions = 0

  /** `loadMax`: the share of the time that all sessions may need if everybody speaks. */
  constructor(loadMax: number) {
    this.#loadMax = loadMax
  }

  get isMeasured(): boolean {
    return this.#audioMs > 0
  }

  /** The process needed `processMs` for this much audio. */
  record(processMs: number, audioMs: number): void {
    this.#processMs += processMs
    this.#audioMs += audioMs
    if (this.#audioMs < audioMsKept) return
    this.#processMs /= 2
    this.#audioMs /= 2
  }

  /** Whether another session would be served in time. `waitingMs`: audio of finals that wait. */
  admits(waitingMs: number): boolean {
    // Alone, a slow process still serves somebody.
    if (this.#sessions === 0 || !this.isMeasured) return true
    const factor = this.#processMs / this.#audioMs
    return (this.#sessions + 1) * factor <= this.#loadMax && waitingMs * factor <= waitMsMax
  }

  /** Takes the place of a session until the returned function is called. Throws `busy`. */
  take(waitingMs: number): () => void {
    if (!this.admits(waitingMs)) throw new EngineError('busy', 'the model process is at its load')
    this.#sessions += 1
    let isReleased = false
    return () => {
      if (!isReleased) this.#sessions -= 1
      isReleased = true
    }
  }
}
