export type BackOff = { readonly firstMs: number; readonly maxMs: number }

/**
 * How long to let something rest that failed so many times in a row (1, 2, 3 ...): it doubles up to
 * a limit and is jittered, so that what failed together is not tried again together.
 */
export function restMs(failures: number, { firstMs, maxMs }: BackOff): number {
  const grownMs = Math.min(maxMs, firstMs * 2 ** Math.max(0, failures - 1))
  return (0.5 + Math.random() / 2) * grownMs
}
