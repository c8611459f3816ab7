export type MemorySample = { readonly atMs: number; readonly bytes: number }

/** Samples to ignore after the start. */
export function formatSlope(memory: readonly MemorySample[], samplesMin: number): string {
  if (memory.length < samplesMin) return 'the run is too short to tell'
  return `${slopePerMinute(memory).toFixed(2)} MiB/min`
}

export function toMebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1)
}

/** Least-squares slope of the second half of the samples, in MiB/min. */
export function slopePerMinute(memory: readonly MemorySample[]): number {
  const half = memory.slice(Math.floor(memory.length / 2))
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const meanMs = mean(half.map(({ atMs }) => atMs))
  const meanBytes = mean(half.map(({ bytes }) => bytes))
  const covariance = mean(half.map(({ atMs, bytes }) => (atMs - meanMs) * (bytes - meanBytes)))
  const variance = mean(half.map(({ atMs }) => (atMs - meanMs) ** 2))
  return variance === 0 ? 0 : (covariance / variance / 2 ** 20) * 60_000
}
