/**
 * Calls `expire` once when something that was begun did not end within `limitMs`. Beginning and
 * ending cost a clock read: one timer serves them all and is set anew when it fires too early.
 */
export function createWatchdog(
  limitMs: number,
  expire: () => void,
): { begin(): void; end(): void; stop(): void } {
  let begunAt = Number.POSITIVE_INFINITY
  let timer = setTimeout(check, limitMs)
  function check() {
    const restMs = begunAt + limitMs - performance.now()
    if (restMs <= 0) expire()
    else timer = setTimeout(check, Math.min(restMs, limitMs))
  }
  return {
    begin() {
      begunAt = performance.now()
    },
    end() {
      begunAt = Number.POSITIVE_INFINITY
    },
    stop() {
      clearTimeout(timer)
    },
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
