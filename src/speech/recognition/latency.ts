/** Resolution and number of the marks that record when audio arrived: about half a minute. */
const stepMs = 50
const marksMax = 600
/** The newest finals that the summary covers. */
const finalsMax = 512

/** Measures the delay from writing audio to the text for it, in milliseconds. */
export class LatencyMeter {
  readonly #marks: { receivedMs: number; readonly at: number }[] = []
  readonly #finals: number[] = []
  #finalsSeen = 0
  #droppedMs = 0
  #firstPartial: number | null = null

  wrote(receivedMs: number): void {
    const last = this.#marks.at(-1)
    const at = performance.now()
    if (last !== undefined && at - last.at < stepMs) last.receivedMs = receivedMs
    else this.#marks.push({ receivedMs, at })
    if (this.#marks.length > marksMax) this.#dropFirst()
  }

  /** Only the first partial is measured. */
  partial(endMs: number): void {
    this.#firstPartial ??= this.#since(endMs)
  }

  final(endMs: number): void {
    const latencyMs = this.#since(endMs)
    while ((this.#marks[0]?.receivedMs ?? endMs) < endMs) this.#dropFirst()
    if (latencyMs === null) return
    this.#finals[this.#finalsSeen % finalsMax] = latencyMs
    this.#finalsSeen += 1
  }

  summary() {
    const sorted = this.#finals.toSorted((one, other) => one - other)
    const percentile = (share: number) =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null
    return {
      firstPartial: this.#firstPartial,
      finalP50: percentile(0.5),
      finalP95: percentile(0.95),
    }
  }

  #dropFirst(): void {
    this.#droppedMs = this.#marks.shift()?.receivedMs ?? this.#droppedMs
  }

  #since(endMs: number): number | null {
    if (endMs <= this.#droppedMs) return null
    const mark = this.#marks.find(({ receivedMs }) => receivedMs >= endMs)
    return mark === undefined ? null : Math.max(0, Math.round(performance.now() - mark.at))
  }
}

/** A client that leaves writable space unused for this long has no audio waiting. */
const idleMs = 300

/**
 * Measures how far an engine lags behind the speaker. In a live session the client holds back audio
 * under backpressure, so the spoken position is derived from the clock. In any other session the lag
 * is the audio received but not processed.
 */
export class LagMeter {
  lagMsMax = 0
  readonly #isLive: boolean
  readonly #warnFromMs: number
  /** The time at which the session would have started if it had been spoken without a pause. */
  #spokenFrom: number | null = null
  #wroteAt = 0
  #writableSince: number | null = performance.now()
  #hasWarned = false

  constructor(isLive: boolean, warnFromMs: number) {
    this.#isLive = isLive
    this.#warnFromMs = warnFromMs
  }

  wrote(receivedMs: number): void {
    const now = performance.now()
    const from = now - receivedMs
    const isNew = this.#spokenFrom === null || this.#isIdle(now)
    this.#spokenFrom = isNew ? from : Math.min(this.#spokenFrom ?? from, from)
    this.#wroteAt = now
  }

  setWritable(isWritable: boolean): void {
    if (isWritable) this.#writableSince ??= performance.now()
    else this.#writableSince = null
  }

  /** Returns an excessive lag of a live session; once, and again after it dropped by half. */
  check(receivedMs: number, processedMs: number): number | null {
    const now = performance.now()
    const isHeldBack = this.#isLive && this.#spokenFrom !== null && !this.#isIdle(now)
    const spokenMs = isHeldBack ? Math.max(receivedMs, now - (this.#spokenFrom ?? now)) : receivedMs
    const lagMs = Math.max(0, Math.round(spokenMs - processedMs))
    this.lagMsMax = Math.max(this.lagMsMax, lagMs)
    if (lagMs < this.#warnFromMs / 2) this.#hasWarned = false
    if (!this.#isLive || this.#hasWarned || lagMs <= this.#warnFromMs) return null
    this.#hasWarned = true
    return lagMs
  }

  #isIdle(now: number): boolean {
    if (this.#writableSince === null) return false
    return now - Math.max(this.#writableSince, this.#wroteAt) > idleMs
  }
}
