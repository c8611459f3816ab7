/**
 * One turn of the event loop, which all streams of a process share. When many upstreams flood it, their
 * chunks are delivered in rounds, so that other requests, such as health checks, are served between
 * them. Other load pays for an addition per chunk.
 */
export type Turn = {
  /** Whether this turn has delivered enough; then `wait` for the next one. */
  isOver(): boolean
  /** A chunk of this length is delivered now. */
  spend(bytes: number): void
  /** Delivers in one of the next turns, in order. */
  wait(stream: WaitingStream): void
}

type WaitingStream = { deliver(): void }

/** About 20 ms of decoding, rendering and writing. */
const turnBytesMax = 262_144

export function createTurn(bytesMax: number): Turn {
  const waiting = new Set<WaitingStream>()
  let spent = 0

  /** A count may begin in the middle of a turn; half of the limit is left for the rest of that turn. */
  function begin() {
    spent = 0
    for (const stream of waiting) {
      if (spent >= bytesMax) return
      waiting.delete(stream)
      stream.deliver()
    }
  }
  return {
    isOver: () => spent >= bytesMax,
    spend(bytes) {
      const wasHalfway = spent >= bytesMax / 2
      spent += bytes
      if (!wasHalfway && spent >= bytesMax / 2) setImmediate(begin)
    },
    wait: (stream) => waiting.add(stream),
  }
}

/** Of this process, which has one event loop. */
export const processTurn = createTurn(turnBytesMax)
