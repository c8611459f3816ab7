import { AppError } from '#lib/errors.ts'

type ErrorClass = abstract new (...given: never[]) => Error

/** What a parser returns or throws of its own; null for such an error. */
export function attempt<T>(parse: () => T, known: ErrorClass = AppError): T | null {
  try {
    return parse()
  } catch (error) {
    if (error instanceof known) return null
    throw error
  }
}
