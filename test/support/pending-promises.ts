/** Runs all that goes on without an event of the event loop: the callbacks of settled promises. */
export async function runPendingPromises(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await Promise.resolve()
}
