import { AppError } from './errors.ts'
import type { SchemaFault } from './schema.ts'

/**
 * Errors with status 422, for a body or query that is well-formed but invalid. An empty `param` means
 * the whole of it.
 */
export function refused(param: string, message: string, code?: string): AppError {
  return new AppError('unprocessable', message, {
    ...(param === '' ? {} : { param }),
    ...(code === undefined ? {} : { code }),
  })
}

/** `problem` completes a sentence that starts with the field: `must not be empty`. */
export function refusedField(param: string, problem: string, code?: string): AppError {
  return refused(param, `"${param}" ${problem}.`, code)
}

export function unknownField(param: string): AppError {
  return new AppError('unknown_field', `"${param}" is not a known field.`, { param })
}

/** The error for a fault that a checker found. */
export function refusedBySchema(fault: SchemaFault | null): AppError {
  if (fault?.unknownField) return unknownField(fault.path)
  return refused(fault?.path ?? '', fault?.message ?? 'The body is invalid.')
}
