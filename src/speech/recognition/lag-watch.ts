/**
 * How far an engine is behind what was said. Of a live session only a part of that has arrived
 * here: what its client holds back while there is no room is reckoned from the clock. Of any other
 * session it is what was received and is not taken in.
 */
export type LagWatch = {
  wrote(receivedMs: number): void
  /** Whether more may be written now. */
  room(isOpen: boolean): void
  /** The lag of a live session, once it is too much; told again after it was made good by half. */
  check(receivedMs: number, processedMs: number): number | null
  lagMsMax(): number
}

/** A client that leaves room unused for so long has nothing that waits. */
const idleMs = 300

export function createLagWatch(isLive: boolean, toldFromMs: number): LagWatch {
  /** When the session began, had all been said without a pause up to now. */
  let saidFrom: number | null = null
  let wroteAt = 0
  let openSince: number | null = performance.now()
  let lagMsMax = 0
  let isTold = false

  const isIdle = (now: number) => openSince !== null && now - Math.max(openSince, wroteAt) > idleMs
  const lagOf = (receivedMs: number, processedMs: number) => {
    const now = performance.now()
    const isHeldBack = isLive && saidFrom !== null && !isIdle(now)
    const saidMs = isHeldBack ? Math.max(receivedMs, now - (saidFrom ?? now)) : receivedMs
    return Math.max(0, Math.round(saidMs - processedMs))
  }

  return {
    wrote(receivedMs) {
      const now = performance.now()
      const from = now - receivedMs
      saidFrom = saidFrom === null || isIdle(now) ? from : Math.min(saidFrom, from)
      wroteAt = now
    },
    room(isOpen) {
      if (isOpen) openSince ??= performance.now()
      else openSince = null
    },
    check(receivedMs, processedMs) {
      const lagMs = lagOf(receivedMs, processedMs)
      lagMsMax = Math.max(lagMsMax, lagMs)
      if (lagMs < toldFromMs / 2) isTold = false
      if (!isLive || isTold || lagMs <= toldFromMs) return null
      isTold = true
      return lagMs
    },
    lagMsMax: () => lagMsMax,
  }
}
