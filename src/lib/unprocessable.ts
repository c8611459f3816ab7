import { AppError } from './errors.ts'
import type { SchemaFault } from './schema.ts'

/**
 * Errors of status 422, about a body or a query that can be read and breaks its rules. An empty
 * `param` stands for the whole of it.
 */
export function refused(param: string, sentence: string, code?: string): AppError {
  return new AppError('unprocessable', sentence, {
    ...(param === '' ? {} : { param }),
    ...(code === undefined ? {} : { code }),
  })
}

/** `complaint` completes the sentence that begins with the field: `must not be empty`. */
export function refusedField(param: string, complaint: string, code?: string): AppError {
  return refused(param, `"${param}" ${complaint}.`, code)
}

export function unknownField(param: string): AppError {
  return new AppError('unknown_field', `"${param}" is not a known field.`, { param })
}

/** What a checker found, in its own words. */
export function refusedBySchema(fault: SchemaFault | null): AppError {
  if (fault?.unknownField) return unknownField(fault.path)
  return refused(fault?.path ?? '', fault?.message ?? 'The body is not as expected.')
}
