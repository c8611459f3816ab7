import type { Static, TSchema } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'
import { isRecord, withoutNulls } from '#lib/json.ts'
import type { Checker } from '#lib/schema.ts'

/** The fields of a body; one that is null counts as not given. Throws an `AppError` of status 422. */
export function readBody<T extends TSchema>(checker: Checker<T>, body: unknown): Static<T> {
  if (!isRecord(body)) throw refused(null, 'The body must be an object.')
  const given = withoutNulls(body)
  if (checker.check(given)) return given
  const fault = checker.firstError(given)
  const details = fault?.path ? { param: fault.path } : {}
  const kind = fault?.unknownField ? 'unknown_field' : 'unprocessable'
  throw new AppError(kind, fault?.message ?? 'The body is not as expected.', details)
}

/** An error about a readable body that breaks its rules. */
export function refused(param: string | null, sentence: string, code?: string): AppError {
  return new AppError('unprocessable', sentence, {
    ...(param === null ? {} : { param }),
    ...(code === undefined ? {} : { code }),
  })
}
