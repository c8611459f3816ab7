import type { Static, TSchema } from '@sinclair/typebox'
import { isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'

/** Validates bodies in which a null field counts as absent. Throws an `AppError` of status 422. */
export function bodyReader<T extends TSchema>(schema: T): (body: unknown) => Static<T> {
  const checker = compileChecker(schema)
  return (body) => {
    if (!isRecord(body)) throw refused('', 'The body must be an object.')
    const fields = withoutNulls(body)
    if (checker.check(fields)) return fields
    throw refusedBySchema(checker.firstError(fields))
  }
}
