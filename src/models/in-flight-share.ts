/**
 * The share of a worker in the concurrent requests to an upstream, so that the workers of a machine
 * together keep the configured number. Each worker gets at least one.
 */
export function inFlightShare(
  maxInFlight: number | undefined,
  { workers, workerIndex = 0 }: { readonly workers: number; readonly workerIndex?: number },
): number {
  if (maxInFlight === undefined) return Number.POSITIVE_INFINITY
  const remainder = workerIndex < maxInFlight % workers ? 1 : 0
  return Math.max(1, Math.floor(maxInFlight / workers) + remainder)
}
