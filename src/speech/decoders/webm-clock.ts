import type { AudioFaults } from './decoder.ts'
import { jitter48Max, packetSamples48 } from './opus-head.ts'

/** Clocks of recorders may differ from the samples by this share, which is no gap. */
const driftMax = 1 / 1_000
/** Unless the segment states another scale. */
const defaultTickNs = 1_000_000

export type WebmClock = ReturnType<typeof createWebmClock>

/** Compares the timestamps of blocks with the audio before them. */
export function createWebmClock(faults: AudioFaults) {
  let tickNs = defaultTickNs
  let cluster = 0
  /** Where the next block is expected, at 48 kHz. */
  let expected48: number | null = null

  return {
    setScale(ns: number): void {
      tickNs = ns
    },
    beginCluster(timestamp: number): void {
      cluster = timestamp
    },
    /** Returns the samples that are missing before a block; `time`: relative to its cluster. */
    advance(time: number, packets: readonly Uint8Array[]): number {
      const at48 = samplesOf((cluster + time) * tickNs)
      const length48 = packets.reduce((sum, packet) => sum + packetSamples48(packet), 0)
      const late48 = at48 - (expected48 ?? at48)
      if (Math.abs(late48) > jitter48Max) {
        expected48 = at48 + length48
        if (late48 > 0) faults.gaps += 1
        return Math.max(0, late48)
      }
      const drift48 = Math.min(Math.max(late48, -length48 * driftMax), length48 * driftMax)
      expected48 = at48 - late48 + length48 + drift48
      return 0
    },
  }
}

/** Samples at 48 kHz. */
export function samplesOf(nanoseconds: number): number {
  return Math.round((nanoseconds * 48) / 1_000_000)
}
