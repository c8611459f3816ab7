import type { VoiceStretch } from '#speech/voice-activity.ts'
import type { Gap } from './recognition-events.ts'

type Stretch = Pick<VoiceStretch, 'startMs' | 'endMs'>

/** Where somebody speaks, as far as it is still needed: stretches in order, with pauses between. */
export type SpeechMap = {
  /** A stretch that is over; it follows all before. */
  add(stretch: Stretch): void
  /** The stretch that is going on, as far as it was heard; null in silence. */
  setCurrent(stretch: Stretch | null): void
  /** What was said in this span, cut to it. */
  within(startMs: number, endMs: number): Gap[]
  speechMs(startMs: number, endMs: number): number
  /** Whether the stretch that holds this time is still going on. */
  isGoingOnAt(atMs: number): boolean
  dropBefore(atMs: number): void
}

/** More are joined, the oldest first, pauses and all: so they count as speech, never as silence. */
const stretchesMax = 1_024

export function createSpeechMap(): SpeechMap {
  const stretches: Stretch[] = []
  let current: Stretch | null = null

  const within = (startMs: number, endMs: number) => {
    const cut: Gap[] = []
    const add = (stretch: Stretch) => {
      const start = Math.max(startMs, stretch.startMs)
      const end = Math.min(endMs, stretch.endMs)
      if (start < end) cut.push({ startMs: start, endMs: end })
    }
    for (const stretch of stretches) add(stretch)
    if (current !== null) add(current)
    return cut
  }

  return {
    add({ startMs, endMs }) {
      stretches.push({ startMs, endMs })
      const [first, second] = stretches
      if (stretches.length <= stretchesMax || first === undefined || second === undefined) return
      stretches.splice(0, 2, { startMs: first.startMs, endMs: second.endMs })
    },
    setCurrent(stretch) {
      current = stretch
    },
    within,
    speechMs: (startMs, endMs) =>
      within(startMs, endMs).reduce((sum, span) => sum + span.endMs - span.startMs, 0),
    isGoingOnAt: (atMs) => current !== null && current.startMs <= atMs && atMs <= current.endMs,
    dropBefore(atMs) {
      const kept = stretches.findIndex((stretch) => stretch.endMs > atMs)
      stretches.splice(0, kept < 0 ? stretches.length : kept)
    },
  }
}
