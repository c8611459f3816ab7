import { AppError } from '#lib/errors.ts'
import { readObjectsWith } from '#surfaces/read-object.ts'

/**
 * `predicate` says what is wrong with the field: `must not be empty`. Paths are as the protocol
 * writes them: `messages.2.content.0`.
 */
export function badField(path: string, predicate: string): AppError {
  if (path === '') return new AppError('invalid_request', `The request body ${predicate}.`)
  return new AppError('invalid_request', `${path}: ${predicate}`, { param: path })
}

export const { createReader, readType } = readObjectsWith(badField)
