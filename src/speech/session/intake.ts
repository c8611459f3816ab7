import type { Wire } from './outbox.ts'

/** What all sessions together keep of audio that is not decoded yet. */
export type AudioBudget = {
  change(bytes: number): void
  /** Whether each session may keep only half of its own. */
  isTight(): boolean
  queuedBytes(): number
  /** The most it has ever been. */
  queuedBytesPeak(): number
}

export function createAudioBudget(bytesMax: number): AudioBudget {
  let queuedBytes = 0
  let queuedBytesPeak = 0
  return {
    change(bytes) {
      queuedBytes += bytes
      queuedBytesPeak = Math.max(queuedBytesPeak, queuedBytes)
    },
    isTight: () => queuedBytes > bytesMax,
    queuedBytes: () => queuedBytes,
    queuedBytesPeak: () => queuedBytesPeak,
  }
}

/**
 * Whether a client is read: not while its queue is full, nor while it does not read itself. A
 * client that asked for credit is told how much it may send, and is never paused if it obeys.
 */
export type Intake = {
  attach(wire: Wire): void
  detach(): void
  /** After something came: whether that was enough. */
  checkFull(state: IntakeState): void
  /** After something was taken: whether there is room again. */
  checkRoom(state: IntakeState): void
  /** Keeps the socket paused whatever the queue says, until it is let go. */
  hold(isHeld: boolean): void
  isPaused(): boolean
  /** What a client may send beside what was taken. */
  windowBytes(): number
  pauses(): number
  pausedMs(): number
}

type IntakeState = { readonly storedBytes: number; readonly readerIsFull: boolean }

/** It is read again once so much of the limit is left. */
const lowWaterPart = 1 / 4

export function createIntake(options: { queueBytesMax: number; budget: AudioBudget }): Intake {
  const { budget, queueBytesMax } = options
  let wire: Wire | null = null
  let isHeld = false
  let isFull = false
  let pausedSince: number | null = null
  let pauses = 0
  let pausedMs = 0
  const windowBytes = () => (budget.isTight() ? Math.floor(queueBytesMax / 2) : queueBytesMax)

  function endPause(): void {
    if (pausedSince !== null) pausedMs += performance.now() - pausedSince
    pausedSince = null
  }

  function apply(): void {
    if (wire === null) return
    const shouldPause = isHeld || isFull
    if (isFull && pausedSince === null) {
      pauses++
      pausedSince = performance.now()
    }
    if (!isFull) endPause()
    if (shouldPause === wire.isPaused) return
    if (shouldPause) wire.pause()
    else wire.resume()
  }

  return {
    attach(newWire) {
      wire = newWire
      apply()
    },
    detach() {
      wire = null
      isFull = false
      endPause()
    },
    checkFull({ storedBytes, readerIsFull }) {
      if (isFull || (storedBytes <= windowBytes() && !readerIsFull)) return
      isFull = true
      apply()
    },
    checkRoom({ storedBytes, readerIsFull }) {
      if (!isFull || storedBytes > windowBytes() * lowWaterPart || readerIsFull) return
      isFull = false
      apply()
    },
    hold(hold) {
      isHeld = hold
      apply()
    },
    isPaused: () => isHeld || isFull,
    windowBytes,
    pauses: () => pauses,
    pausedMs: () => pausedMs + (pausedSince === null ? 0 : performance.now() - pausedSince),
  }
}
