import { createReaders } from '#api/read-object.ts'
import { AppError } from '#lib/errors.ts'

/** `predicate` completes the message that begins with the path of the field: `must be a string`. */
export function invalidField(path: string, predicate: string): AppError {
  if (path === '') return new AppError('invalid_request', `The request body ${predicate}.`)
  return new AppError('invalid_request', `${path}: ${predicate}`, { param: path })
}

export const { readObject, readType } = createReaders(invalidField)

/**
 * A block or option that this gateway does not know. Upstreams of the same protocol may; other requests
 * are refused with it once the model is known.
 */
class UnknownPart extends AppError {}

export function unknownPart(path: string, predicate: string): AppError {
  return new UnknownPart('invalid_request', `${path}: ${predicate}`, { param: path })
}

/** Adds the error of an unknown part to `refusals`, and returns `fallback` in its place. */
export function orRefusal<T>(refusals: AppError[], fallback: T, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof UnknownPart)) throw error
    refusals.push(error)
    return fallback
  }
}
