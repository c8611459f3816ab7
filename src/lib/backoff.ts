/**
 * The pause after consecutive failures (1, 2, 3 …): exponential up to a limit, with jitter so that
 * simultaneous failures are not retried simultaneously.
 */
export function jitteredBackoffMs(
  failures: number,
  { firstMs, maxMs = Number.POSITIVE_INFINITY }: { firstMs: number; maxMs?: number },
): number {
  const grownMs = Math.min(maxMs, firstMs * 2 ** Math.max(0, failures - 1))
  return (0.5 + Math.random() / 2) * grownMs
}
