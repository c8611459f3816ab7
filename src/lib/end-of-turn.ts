let end: Promise<void> | null = null

/**
 * Resolves at the end of this turn of the event loop, when all events that were ready have been received.
 * Who waits in one turn shares the promise, and so requests that arrive together take their next steps
 * together: what a step needs is then loaded into the caches of the processor once, not once per request.
 */
export function endOfTurn(): Promise<void> {
  end ??= new Promise((resolve) =>
    setImmediate(() => {
      end = null
      resolve()
    }),
  )
  return end
}
