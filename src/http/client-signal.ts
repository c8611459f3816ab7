import { Cancellation, type CancelSignal } from '#lib/cancellation.ts'

/** A client that disconnects is noticed after one to two of these. */
const watchEveryMs = 25

/** Signals with a listener, by whether they have been waiting for a whole period. */
let young: ClientSignal[] = []
let old: ClientSignal[] = []
let isWatching = false

function watch(): void {
  for (const signal of old) signal.follow()
  old = young
  young = []
  isWatching = old.length > 0
  if (isWatching) setTimeout(watch, watchEveryMs)
}

function watchLater(signal: ClientSignal): void {
  young.push(signal)
  if (isWatching) return
  isWatching = true
  setTimeout(watch, watchEveryMs)
}

/**
 * Aborted when the client of a request disconnects, and told so a moment later. The signal of the
 * runtime costs microseconds, so a request that ends at once never asks for it.
 */
export class ClientSignal implements CancelSignal {
  readonly #request: Request
  /** Follows the signal of the runtime, later. */
  readonly #cancellation = new Cancellation()
  #isWatched = false

  constructor(request: Request) {
    this.#request = request
  }

  get aborted(): boolean {
    return this.#cancellation.aborted
  }

  get reason(): unknown {
    return this.#cancellation.reason
  }

  throwIfAborted(): void {
    this.#cancellation.throwIfAborted()
  }

  addEventListener(type: 'abort', listener: () => void): void {
    this.#cancellation.addEventListener(type, listener)
    if (this.#isWatched) return
    this.#isWatched = true
    watchLater(this)
  }

  removeEventListener(type: 'abort', listener: () => void): void {
    this.#cancellation.removeEventListener(type, listener)
  }

  /** Unless nobody listens any more. */
  follow(): void {
    if (!this.#cancellation.hasListeners) {
      this.#isWatched = false
      return
    }
    const { signal } = this.#request
    const abort = () => this.#cancellation.abort(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  }
}
