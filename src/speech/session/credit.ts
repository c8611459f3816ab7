import { ackIntervalMs } from './render-frames.ts'

/**
 * How much a client may have sent since its session began: what was taken from its queue, and what
 * the queue holds. The total never goes back, so that a client may miss an acknowledgement.
 */
export type Credit = {
  /** The total to tell now. */
  grant(flow: { readonly takenBytes: number; readonly windowBytes: number }): number
  /** Whether there is something new to tell, and it is time to. */
  isDue(flow: { readonly takenBytes: number; readonly windowBytes: number }): boolean
  /** How far the engine is, which is worth telling even without new credit. */
  progressed(processedMs: number): void
  isOverdrawn(receivedBytes: number): boolean
}

/** A quarter of the window is told at once; what is less, after the interval. */
const hastyPart = 1 / 4
/** What a client may be beyond its credit before it counts as one that does not obey. */
const toleranceBytes = 65_536

export function createCredit(): Credit {
  let grantedBytes = 0
  let grantedAt = performance.now()
  let processedMs = 0
  let toldMs = 0

  const current = ({ takenBytes, windowBytes }: { takenBytes: number; windowBytes: number }) =>
    Math.max(grantedBytes, takenBytes + windowBytes)

  return {
    grant(flow) {
      grantedBytes = current(flow)
      grantedAt = performance.now()
      toldMs = processedMs
      return grantedBytes
    },
    isDue(flow) {
      const newBytes = current(flow) - grantedBytes
      if (newBytes >= flow.windowBytes * hastyPart) return true
      return (
        (newBytes > 0 || processedMs > toldMs) && performance.now() - grantedAt >= ackIntervalMs
      )
    },
    progressed(ms) {
      processedMs = ms
    },
    isOverdrawn: (receivedBytes) => receivedBytes > grantedBytes + toleranceBytes,
  }
}
