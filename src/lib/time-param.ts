import { parseInstant } from './instant.ts'
import { refused } from './unprocessable.ts'

const yearMax = 9_999

/** A date or a time with its zone; throws an `AppError` of status 422 for anything else. */
export function readTimeParam(param: string, text: string): Date {
  const at = parseInstant(text)
  if (at !== null && at.getTime() >= 0 && at.getUTCFullYear() <= yearMax) return at
  throw refused(
    param,
    `"${param}" must be a date or a time with its zone, such as 2026-11-01 or 2026-11-01T08:00:00Z.`,
  )
}
