/**
 * A timer that fires this late shows that the process did not run: it was suspended, or the machine
 * slept. Work whose limit passed meanwhile gets the limit again, once: its reply may wait in a socket.
 */
const suspendedMs = 1_000

/** Calls `expire` after the limit, of time in which the process ran. Returns a function that ends it. */
export function startLimit(limitMs: number, expire: () => void): () => void {
  const dueAt = performance.now() + limitMs
  let timer = setTimeout(() => {
    if (performance.now() - dueAt < suspendedMs) expire()
    else timer = setTimeout(expire, limitMs)
  }, limitMs)
  return () => clearTimeout(timer)
}

/** The result of the work, or `late` after the limit; the work itself continues. */
export async function orAfter<T, L>(work: Promise<T>, limitMs: number, late: L): Promise<T | L> {
  const expiry = Promise.withResolvers<L>()
  const stop = startLimit(limitMs, () => expiry.resolve(late))
  try {
    return await Promise.race([work, expiry.promise])
  } finally {
    stop()
  }
}

const expired = Symbol('expired')

/** The result of the work, or the error that `late` creates after the limit. */
export async function withTimeLimit<T>(
  work: Promise<T>,
  limitMs: number,
  late: () => Error,
): Promise<T> {
  const outcome = await orAfter<T, typeof expired>(work, limitMs, expired)
  if (outcome === expired) throw late()
  return outcome
}
