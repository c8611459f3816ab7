import { createReaders } from '#api/read-object.ts'
import { AppError } from '#lib/errors.ts'

/** `predicate` completes the message that begins with the path of the field: `must be a string`. */
export function invalidField(path: string, predicate: string): AppError {
  if (path === '') return new AppError('invalid_request', `The request body ${predicate}.`)
  return new AppError('invalid_request', `${path}: ${predicate}`, { param: path })
}

export const { readObject, readType } = createReaders(invalidField)
