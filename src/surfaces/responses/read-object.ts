import { createReaders } from '#api/read-object.ts'
import { AppError } from '#lib/errors.ts'

/** `predicate` completes the sentence that begins with the field: `must not be empty`. */
export function invalidField(param: string, predicate: string): AppError {
  const subject = param === '' ? 'The request body' : param
  return new AppError('invalid_request', `${subject} ${predicate}.`, param === '' ? {} : { param })
}

export const { readObject, readType } = createReaders(invalidField)
