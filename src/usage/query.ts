import { type Static, Type } from '@sinclair/typebox'
import type { CallerContext, QueryReader } from '#api/endpoint.ts'
import { readQuery } from '#api/query.ts'
import { oneOf } from '#api/request-schema.ts'
import { AppError } from '#lib/errors.ts'
import { parseInstant } from '#lib/instant.ts'
import { readTimeParam } from '#lib/time-param.ts'
import { refused } from '#lib/unprocessable.ts'
import {
  type Dimension,
  dayMs,
  dimensionNames,
  isTime,
  type UsageFilter,
  type UsageGrouping,
  wholeHours,
} from './grouping.ts'
import { usageKinds, usageOutcomes } from './record.ts'

const daysByDefault = 30
const nameCharsMax = 256

const name = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: nameCharsMax, description }))
const id = (description: string) => Type.Optional(Type.String({ format: 'uuid', description }))
const time = (description: string) => Type.Optional(Type.String({ description }))

const filterParams = {
  from: time('A date or a time with its zone; by default 30 days before `to`.'),
  to: time('The same, excluded; by default now.'),
  user: Type.Optional(
    Type.String({
      pattern: '^(me|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$',
      description: 'The id of a user, or `me`.',
    }),
  ),
  key: id('The id of an API key.'),
  agent: id('The id of an agent.'),
  model: name('The name of a model in the model list, or of a speech engine.'),
  upstream: name('The name of an upstream.'),
  kind: Type.Optional(oneOf(usageKinds, 'What was called.')),
  outcome: Type.Optional(oneOf(usageOutcomes, 'How it ended.')),
  format: Type.Optional(
    oneOf(['json', 'csv'], '`csv`: all rows as CSV, as with `Accept: text/csv`.'),
  ),
}

const groupParams = Type.Object(
  {
    group_by: Type.Array(Type.Union(dimensionNames.map((dimension) => Type.Literal(dimension))), {
      description: 'One or more, also separated by commas; at most one of them a time.',
      default: ['day'],
    }),
    ...filterParams,
    limit: Type.Integer({
      description: 'Groups per page.',
      minimum: 1,
      maximum: 1_000,
      default: 100,
    }),
    after: Type.Optional(
      Type.String({ maxLength: 8_192, description: 'The id of the last group of the last page.' }),
    ),
  },
  { additionalProperties: false },
)

const recordParams = Type.Object(
  {
    ...filterParams,
    request_id: name('The `x-request-id` of a request.'),
    limit: Type.Integer({
      description: 'Records per page.',
      minimum: 1,
      maximum: 1_000,
      default: 100,
    }),
    after: id('The id of the last record of the last page.'),
  },
  { additionalProperties: false },
)

type FilterParams = Omit<Static<typeof recordParams>, 'limit' | 'after'>

type GroupQuery = UsageGrouping & {
  limit: number
  after: readonly string[] | undefined
  isCsv: boolean
}
type RecordQuery = { filter: UsageFilter; limit: number; after: string | undefined; isCsv: boolean }

/** The query of `GET /v1/usage`. */
export function groupQuery(now: () => Date): QueryReader<GroupQuery> {
  return {
    schema: groupParams,
    read(params) {
      const query = readQuery(groupParams, withoutCommas(params)) as Static<typeof groupParams>
      const by = [...new Set(query.group_by)]
      if (by.filter(isTime).length > 1) {
        throw refused('group_by', '"group_by" must contain at most one of hour, day and month.')
      }
      const filter = readFilter(query, now())
      const { limit, after } = query
      return {
        by,
        filter: { ...filter, ...wholeHours(filter) },
        limit,
        after: after === undefined ? undefined : readGroupId(after, by),
        isCsv: query.format === 'csv',
      }
    },
  }
}

/** The query of `GET /v1/usage/records`. */
export function recordQuery(now: () => Date): QueryReader<RecordQuery> {
  return {
    schema: recordParams,
    read(params) {
      const query = readQuery(recordParams, params.toString()) as Static<typeof recordParams>
      const { limit, after, format } = query
      return { filter: readFilter(query, now()), limit, after, isCsv: format === 'csv' }
    },
  }
}

function withoutCommas(params: URLSearchParams): string {
  const split = new URLSearchParams()
  for (const [key, value] of params) {
    const values = key === 'group_by' ? value.split(',') : [value]
    for (const each of values) split.append(key, each)
  }
  return split.toString()
}

function readFilter(
  { format: _, request_id: requestId, ...params }: FilterParams,
  now: Date,
): UsageFilter {
  const to = params.to === undefined ? new Date(now.getTime() + 1) : readTimeParam('to', params.to)
  const from =
    params.from === undefined
      ? new Date(to.getTime() - daysByDefault * dayMs)
      : readTimeParam('from', params.from)
  if (from >= to) throw refused('from', '"from" must be before "to".')
  return { ...params, requestId, from, to }
}

/**
 * The filter with the rights of the caller: without `can_manage_models` only their own usage. Throws
 * `permission_denied` for that of others.
 */
export function ownUsage(filter: UsageFilter, { principal }: CallerContext): UsageFilter {
  const own = principal.userId
  const user = filter.user === 'me' ? own : filter.user?.toLowerCase()
  if (principal.permissions.has('can_manage_models')) return { ...filter, user }
  if (user !== undefined && user !== own) {
    throw new AppError('permission_denied', 'Missing permission: can_manage_models.')
  }
  return { ...filter, user: own }
}

/** The id of a group contains its values, so that the next page can start after it. */
export function groupId(values: readonly string[]): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url')
}

export function readGroupId(text: string, by: readonly Dimension[]): readonly string[] {
  const invalid = () => refused('after', '"after" must be the id of a group of the same request.')
  let values: unknown
  try {
    values = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    throw invalid()
  }
  const isValid = (value: unknown, at: number): value is string =>
    typeof value === 'string' && isValue(by[at], value)
  if (!Array.isArray(values) || values.length !== by.length || !values.every(isValid)) {
    throw invalid()
  }
  return values
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function isValue(dimension: Dimension | undefined, value: string): boolean {
  if (dimension === undefined) return false
  if (isTime(dimension)) return parseInstant(value) !== null
  if (dimension === 'user' || dimension === 'key' || dimension === 'agent') return uuid.test(value)
  return !value.includes('\0') && value.isWellFormed()
}
