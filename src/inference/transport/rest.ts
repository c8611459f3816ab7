/** A rest follows turns of the event loop that deliver few chunks. */
export type Rest = {
  /** A chunk is delivered in this turn. */
  delivered(): void
}

export type RestOptions = {
  /** Blocks the process. */
  sleep: (ms: number) => void
  nowMs: () => number
  afterTurn: (callback: () => void) => void
}

/** A rest delays no event by more than this. */
const restMs = 1
/** Rates are measured over this many chunks. */
const windowChunks = 64
/** At a lower rate, too few chunks arrive during a rest to be worth it. */
const chunksPerMsMin = 4
/** A turn with this many chunks is worth its cost; more have arrived meanwhile. */
const turnChunksMin = 12

/**
 * A turn of the event loop costs as much as an event. Of hundreds of streams, each turn would deliver one
 * or two events; after a short rest, one turn delivers many. A process that is not fast enough to rest has
 * long turns, and does not.
 */
export function createRest(options: RestOptions = processOptions): Rest {
  let windowLeft = windowChunks
  let windowBeganMs = 0
  let isFrequent = false
  let turnChunks = 0

  function endTurn() {
    const isShort = turnChunks < turnChunksMin
    turnChunks = 0
    if (isShort) options.sleep(restMs)
  }
  return {
    delivered() {
      windowLeft -= 1
      if (windowLeft === 0) {
        const nowMs = options.nowMs()
        isFrequent = nowMs - windowBeganMs <= windowChunks / chunksPerMsMin
        windowBeganMs = nowMs
        windowLeft = windowChunks
      }
      if (!isFrequent) return
      turnChunks += 1
      if (turnChunks === 1) options.afterTurn(endTurn)
    },
  }
}

const processOptions: RestOptions = {
  sleep: (ms) => Bun.sleepSync(ms),
  nowMs: () => performance.now(),
  afterTurn: (callback) => {
    setImmediate(callback)
  },
}
