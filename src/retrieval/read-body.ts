import type { Static, TSchema } from '@sinclair/typebox'
import { isRecord, withoutNulls } from '#lib/json.ts'
import type { Checker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'

/** The fields of a body; one that is null counts as not given. Throws an `AppError` of status 422. */
export function readBody<T extends TSchema>(checker: Checker<T>, body: unknown): Static<T> {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  const given = withoutNulls(body)
  if (checker.check(given)) return given
  throw refusedBySchema(checker.firstError(given))
}
