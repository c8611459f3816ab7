/** Bytes a second over the last seconds. */
export type RateMeter = {
  add(bytes: number): void
  /** Null where nothing came for a while. */
  perSecond(): number | null
}

const windowMs = 10_000
/** What came within one is one sample. */
const sampleMs = 250
/** Before that a rate is an accident. */
const spanMinMs = 500

export function createRateMeter(nowMs: () => number = () => performance.now()): RateMeter {
  const beganAt = nowMs()
  let samples: { at: number; bytes: number }[] = []

  return {
    add(bytes) {
      const at = nowMs()
      const last = samples.at(-1)
      if (last !== undefined && at - last.at < sampleMs) last.bytes += bytes
      else samples.push({ at, bytes })
      samples = samples.filter((sample) => at - sample.at <= windowMs)
    },
    perSecond() {
      const at = nowMs()
      const recent = samples.filter((sample) => at - sample.at <= windowMs)
      const bytes = recent.reduce((sum, sample) => sum + sample.bytes, 0)
      const spanMs = Math.max(Math.min(at - beganAt, windowMs), spanMinMs)
      return bytes === 0 ? null : Math.round((bytes / spanMs) * 1000)
    },
  }
}
