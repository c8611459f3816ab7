import { Type } from '@sinclair/typebox'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'

type Query = Readonly<Record<string, string | undefined>>

const pageSize = { default: 20, max: 100 }
/** The largest that the database counts to. */
const revisionMax = 2_147_483_647

/** One page of the history; throws an `AppError` of status 422. */
export function readHistoryPage({ limit = String(pageSize.default), after }: Query): {
  limit: number
  before: number | undefined
} {
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > pageSize.max) {
    throw refused('limit', `"limit" must be a whole number from 1 to ${pageSize.max}.`)
  }
  if (after === undefined) return { limit: Number(limit), before: undefined }
  if (!/^\d{1,10}$/.test(after) || Number(after) > revisionMax) {
    throw refused('after', '"after" must be the revision that ends the page before.')
  }
  return { limit: Number(limit), before: Number(after) }
}

/** Whether a change is only tried; throws an `AppError` of status 422. */
export function readDryRun({ dry_run: wanted = 'false' }: Query): boolean {
  if (wanted === 'true' || wanted === 'false') return wanted === 'true'
  throw refused('dry_run', '"dry_run" must be true or false.')
}

/** What says that a change is only tried. */
export const dryRunQuery = Type.Object({
  dry_run: Type.Optional(
    Type.Boolean({ description: 'Changes nothing, and tells what would be.', default: false }),
  ),
})

export const historyQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      description: 'Changes of a page.',
      minimum: 1,
      maximum: pageSize.max,
      default: pageSize.default,
    }),
  ),
  after: Type.Optional(
    Type.Integer({
      description: 'The last revision of the page before.',
      minimum: 0,
      maximum: revisionMax,
    }),
  ),
})

export const rollbackBody = Type.Object(
  {
    revision: Type.Integer({
      description: 'What was set after this change is set again; 0: nothing.',
      minimum: 0,
      maximum: revisionMax,
    }),
  },
  { additionalProperties: false },
)
const rollbackChecker = compileChecker(rollbackBody)

/** The revision to go back to; throws an `AppError` of status 422. */
export function readRollback(body: unknown): number {
  if (rollbackChecker.check(body)) return body.revision
  throw refusedBySchema(rollbackChecker.firstError(body))
}
