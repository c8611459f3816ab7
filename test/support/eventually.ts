const lookMs = 2
const patienceMs = 30_000

/** Resolves once the condition holds; throws when it does not come to hold. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const givesUpAt = performance.now() + patienceMs
  while (!(await holds())) {
    if (performance.now() > givesUpAt) throw new Error(`it did not come about: ${what}`)
    await Bun.sleep(lookMs)
  }
}
