import { errorFromPayload } from '#inference/upstream-error.ts'
import { AppError } from '#lib/errors.ts'

/** The error that a payload reports; a generic one where it carries none. */
export function reportedError(payload?: unknown): AppError {
  return (
    errorFromPayload(payload) ?? new AppError('upstream_error', 'The upstream reported an error.')
  )
}

/** A response that violates the protocol. `violation` completes the sentence "The upstream …". */
export function invalidResponse(violation: string): AppError {
  return new AppError('upstream_invalid_answer', `The upstream ${violation}.`)
}

/** A response that ended before its protocol says that it is complete. */
export function truncatedResponse(missing: string): AppError {
  return new AppError(
    'upstream_truncated',
    `The upstream ended its response without ${missing}: the response was truncated.`,
  )
}

/** A generation whose events ended before its output, or before it finished. */
export function endedEarly(): AppError {
  return new AppError(
    'upstream_truncated',
    'The upstream ended its response before it was complete.',
  )
}

/** `data: [DONE]`, the end marker of chat completions, which servers of other protocols send too. */
export function isDoneMarker(data: string): boolean {
  return /^\s*"?\[done\]"?\s*$/i.test(data)
}
