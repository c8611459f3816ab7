/** The most by which work may outlast its limit. */
const sweepMs = 50

export type SharedLimit = { readonly endsAt: number; readonly expire: () => void }

const limits = new Set<SharedLimit>()
/** Runs while there are limits. */
let timer: Timer | null = null

/**
 * Calls `expire` after the limit, unless `endLimit` comes first. All of these limits share one timer:
 * a timer for each of thousands of requests, nearly all of which end in time, costs more.
 */
export function beginLimit(limitMs: number, expire: () => void): SharedLimit {
  const limit = { endsAt: performance.now() + limitMs, expire }
  limits.add(limit)
  timer ??= setTimeout(sweep, sweepMs)
  return limit
}

export function endLimit(limit: SharedLimit): void {
  if (!limits.delete(limit) || limits.size > 0 || timer === null) return
  clearTimeout(timer)
  timer = null
}

function sweep(): void {
  timer = null
  const now = performance.now()
  for (const limit of limits) {
    if (limit.endsAt > now) continue
    limits.delete(limit)
    limit.expire()
  }
  if (limits.size > 0) timer ??= setTimeout(sweep, sweepMs)
}
