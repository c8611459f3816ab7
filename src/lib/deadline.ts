/**
 * Calls `expire` once when something that was begun did not end within `limitMs`. Beginning and
 * ending cost a clock read: one timer serves them all and is set anew when it fires too early.
 */
export class Watchdog {
  readonly #limitMs: number
  readonly #expire: () => void
  #begunAt = Number.POSITIVE_INFINITY
  #timer: Timer

  constructor(limitMs: number, expire: () => void) {
    this.#limitMs = limitMs
    this.#expire = expire
    this.#timer = setTimeout(() => this.#check(), limitMs)
  }

  begin() {
    this.#begunAt = performance.now()
  }

  end() {
    this.#begunAt = Number.POSITIVE_INFINITY
  }

  stop() {
    clearTimeout(this.#timer)
  }

  #check() {
    const restMs = this.#begunAt + this.#limitMs - performance.now()
    if (restMs <= 0) this.#expire()
    else this.#timer = setTimeout(() => this.#check(), Math.min(restMs, this.#limitMs))
  }
}

/** An abort controller that follows another signal until it is released. */
export function followSignal(signal: AbortSignal): {
  controller: AbortController
  release: () => void
} {
  const controller = new AbortController()
  const follow = () => controller.abort(signal.reason)
  if (signal.aborted) follow()
  else signal.addEventListener('abort', follow, { once: true })
  return { controller, release: () => signal.removeEventListener('abort', follow) }
}

/** Waits, and rejects with the signal's reason as soon as it aborts. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const stop = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal.addEventListener('abort', stop, { once: true })
  })
}
