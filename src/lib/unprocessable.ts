import { AppError } from './errors.ts'
import { type SchemaFault, shortenPath } from './schema.ts'

/**
 * Errors with status 422, for a body or query that is well-formed but invalid. An empty `param` means
 * the whole of it.
 */
export function refused(param: string, message: string, code?: string): AppError {
  return new AppError('unprocessable', message, {
    ...(param === '' ? {} : { param: shortenPath(param) }),
    ...(code === undefined ? {} : { code }),
  })
}

/** `problem` completes a sentence that starts with the field: `must not be empty`. */
export function refusedField(param: string, problem: string, code?: string): AppError {
  return refused(param, `"${shortenPath(param)}" ${problem}.`, code)
}

export function unknownField(param: string): AppError {
  const name = shortenPath(param)
  return new AppError('unknown_field', `"${name}" is not a known field.`, { param: name })
}

/** The error for a fault that a checker found. */
export function refusedBySchema(fault: SchemaFault | null): AppError {
  if (fault?.unknownField) return unknownField(fault.path)
  return refused(fault?.path ?? '', fault?.message ?? 'The body is invalid.')
}
