import type { CancelSignal } from './cancellation.ts'
import { startLimit } from './time-limit.ts'

/** `extend` makes a period at most this many times as long. */
const extensionMax = 4

/**
 * Calls `expire` once when `limitMs` have passed since the time that `sinceMs` returns, of `performance.now()`;
 * `Infinity`: there is no limit at the moment. A single timer is re-armed when it fires early. Returns how to
 * stop, which must be called at the end.
 */
export function watch(limitMs: number, sinceMs: () => number, expire: () => void): () => void {
  let stop = startLimit(limitMs, check)
  function check() {
    const remainingMs = sinceMs() + limitMs - performance.now()
    if (remainingMs <= 0) expire()
    else stop = startLimit(Math.min(remainingMs, limitMs), check)
  }
  return () => stop()
}

/**
 * Calls `expire` once when a period between `begin` and `end` exceeds `limitMs`. Each call costs a
 * clock read at most. `stop` must be called at the end.
 */
export class Watchdog {
  readonly #limitMs: number
  readonly #expire: () => void
  #beganAt = Number.POSITIVE_INFINITY
  #extendedAt = 0
  /** Set by the first period. */
  #stop: (() => void) | null = null

  constructor(limitMs: number, expire: () => void) {
    this.#limitMs = limitMs
    this.#expire = expire
  }

  begin() {
    this.#beganAt = performance.now()
    this.#stop ??= watch(
      this.#limitMs,
      () => Math.max(this.#beganAt, this.#extendedAt),
      this.#expire,
    )
  }

  /** There is life without progress: the period may last longer, within `extensionMax`. */
  extend() {
    const now = performance.now()
    if (now <= this.#beganAt + this.#limitMs * (extensionMax - 1)) this.#extendedAt = now
  }

  end() {
    this.#beganAt = Number.POSITIVE_INFINITY
  }

  stop() {
    this.#stop?.()
  }
}

/** An abort controller that follows another signal until it is released. */
export function followSignal(signal: CancelSignal): {
  controller: AbortController
  release: () => void
} {
  const controller = new AbortController()
  const follow = () => controller.abort(signal.reason)
  if (signal.aborted) follow()
  else signal.addEventListener('abort', follow, { once: true })
  return { controller, release: () => signal.removeEventListener('abort', follow) }
}

/** The same signal for functions of the runtime, which take no other. */
export function toAbortSignal(signal: CancelSignal): AbortSignal {
  return signal instanceof AbortSignal ? signal : followSignal(signal).controller.signal
}

/** Waits, and rejects with the signal's reason as soon as it aborts. */
export function sleep(ms: number, signal: CancelSignal): Promise<void> {
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
