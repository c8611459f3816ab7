/** What code that can be cancelled needs. Every `AbortSignal` is one. */
export type CancelSignal = Pick<AbortSignal, 'aborted' | 'reason' | 'throwIfAborted'> & {
  addEventListener(type: 'abort', listener: () => void, options?: { once: true }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/**
 * A cancel signal and its controller in one. Each request to an upstream has one, and an
 * `AbortController` with its signal and a listener costs as much as encoding the request.
 */
export class Cancellation implements CancelSignal {
  aborted = false
  reason: unknown = undefined
  #listeners: readonly (() => void)[] = none
  #followed: CancelSignal | null = null
  #abortFollowing: (() => void) | null = null

  constructor(followed: CancelSignal | null = null) {
    if (followed !== null) this.follow(followed)
  }

  /** Aborts with this signal, until it is released. */
  follow(signal: CancelSignal) {
    const abort = () => this.abort(signal.reason)
    if (signal.aborted) return abort()
    this.#followed = signal
    this.#abortFollowing = abort
    signal.addEventListener('abort', abort, { once: true })
  }

  /** Without a reason it is that of an `AbortController`. */
  abort(reason: unknown = new DOMException('The operation was aborted.', 'AbortError')) {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    const listeners = this.#listeners
    this.#listeners = none
    for (const listener of listeners) listener()
  }

  release() {
    const abort = this.#abortFollowing
    if (abort !== null) this.#followed?.removeEventListener('abort', abort)
  }

  throwIfAborted() {
    if (this.aborted) throw this.reason
  }

  addEventListener(_type: 'abort', listener: () => void) {
    this.#listeners = this.#listeners.length === 0 ? [listener] : [...this.#listeners, listener]
  }

  removeEventListener(_type: 'abort', removed: () => void) {
    this.#listeners =
      this.#listeners.length === 1 && this.#listeners[0] === removed
        ? none
        : this.#listeners.filter((listener) => listener !== removed)
  }
}

const none: readonly (() => void)[] = []
