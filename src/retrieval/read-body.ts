import type { Static, TSchema } from '@sinclair/typebox'
import { cachedByKey } from '#lib/cached-by-key.ts'
import { isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'

const checkerOf = cachedByKey((schema: TSchema) => compileChecker(schema))

/** Validates a body in which a null field counts as absent. Throws an `AppError` of status 422. */
export function readBody<T extends TSchema>(schema: T, body: unknown): Static<T> {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  const fields = withoutNulls(body)
  const checker = checkerOf(schema)
  if (checker.check(fields)) return fields as Static<T>
  throw refusedBySchema(checker.firstError(fields))
}
