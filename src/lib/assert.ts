/** For what can only be a mistake of ours: it ends the request, never the process. */
export function assert(condition: unknown, sentence: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${sentence}`)
}

/** Ends a `switch` over a union; a new member then fails to compile where it is not handled. */
export function assertNever(value: never): never {
  throw new Error(`unhandled case: ${JSON.stringify(value)}`)
}
