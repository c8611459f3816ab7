import { helperTimeoutMs } from './time-limits.ts'

const lookMs = 2

/** Resolves when the condition holds; throws if it does not within the time limit. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  // Tests move `performance.now()`.
  const givesUpAt = Bun.nanoseconds() + helperTimeoutMs * 1e6
  while (!(await holds())) {
    if (Bun.nanoseconds() > givesUpAt) throw new Error(`it did not come about: ${what}`)
    await Bun.sleep(lookMs)
  }
}
