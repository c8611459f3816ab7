import { Type } from '@sinclair/typebox'
import { parseLabel } from '#auth/schema.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'

/** The wire shapes of `/v1/service-accounts`. */

const groupsMax = 100
const groupCharsMax = 1_000

export const createServiceAccountBody = Type.Object(
  {
    name: Type.String({ description: 'Of 1 to 100 characters.' }),
    groups: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: groupCharsMax }), {
        description: 'The names of the groups that it is to be in.',
        maxItems: groupsMax,
      }),
    ),
  },
  { additionalProperties: false },
)
const createChecker = compileChecker(createServiceAccountBody)

/** Throws an `AppError` of status 422. */
export function parseCreateServiceAccount(body: unknown): { name: string; groups: string[] } {
  if (!createChecker.check(body)) throw refusedBySchema(createChecker.firstError(body))
  const groups = [...new Set(body.groups)]
  const unfit = groups.findIndex((name) => !name.isWellFormed() || name.includes('\0'))
  if (unfit !== -1) {
    throw refused(`groups[${unfit}]`, `"groups[${unfit}]" must be the name of a group.`)
  }
  return { name: parseLabel(body.name), groups }
}
