import type { ServerLine } from './server-session.ts'

/**
 * How much of the audio a server has taken in that does not tell: what was sent, but at most
 * `paceMax` times as fast as it is spoken, and nothing while the connection is clogged.
 */
export type PacedProgress = {
  sent(totalMs: number): void
  /** The server has shown that it knows the audio until here. */
  known(untilMs: number): void
  stop(): void
}

const tickMs = 50

export function createPacedProgress(line: ServerLine, paceMax: number): PacedProgress {
  let sentMs = 0
  let processedMs = 0
  let tickedAt = 0
  let timer: Timer | null = null
  let isStopped = false
  const rest = () => {
    if (timer !== null) clearInterval(timer)
    timer = null
  }
  const advance = (toMs: number) => {
    if (toMs <= processedMs) return
    processedMs = toMs
    if (processedMs >= sentMs) rest()
    line.emit({ type: 'progress', processedMs: Math.round(processedMs), estimated: true })
  }
  const tick = () => {
    const now = performance.now()
    const elapsedMs = now - tickedAt
    tickedAt = now
    if (!line.isClogged()) advance(Math.min(sentMs, processedMs + elapsedMs * paceMax))
  }
  return {
    sent(totalMs) {
      sentMs = totalMs
      if (timer !== null || isStopped || processedMs >= sentMs) return
      tickedAt = performance.now()
      timer = setInterval(tick, tickMs)
    },
    known: (untilMs) => advance(Math.min(sentMs, untilMs)),
    stop() {
      isStopped = true
      rest()
    },
  }
}
