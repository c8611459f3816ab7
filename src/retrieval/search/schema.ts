import { Type } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { refused, unknownField } from '#lib/unprocessable.ts'
import { readBody } from '#retrieval/read-body.ts'
import type { Filter, SearchRequest } from './search.ts'

/** What searches accept. The readers throw an `AppError` of status 422. */

/** More than any embedding model reads. */
const queryCharsMax = 10_000
export const resultsMax = 50
const filtersMax = 32
const filterValuesMax = 100
const filterValueCharsMax = 1_024
const fieldPattern = /^[A-Za-z0-9_.-]{1,64}$/

/** Validated by `readQueryText`, which has its own error codes. */
export const queryText = { type: 'string', minLength: 1, maxLength: queryCharsMax }
const filterText = { type: 'string', maxLength: filterValueCharsMax }

const filter = Type.Unknown({
  type: 'object',
  required: ['field', 'operator', 'value'],
  properties: {
    field: {
      description:
        'An attribute of the file, or `filename`, `mime_type`, `file_id`, `owner_id` or `folder_id` (with its subfolders).',
      type: 'string',
      pattern: fieldPattern.source,
    },
    operator: { enum: ['==', 'in'] },
    value: {
      description: 'A string with `==`, a list of strings with `in`.',
      anyOf: [
        filterText,
        { type: 'array', items: filterText, minItems: 1, maxItems: filterValuesMax },
      ],
    },
  },
  additionalProperties: false,
})

export const searchMode = Type.Union(
  [Type.Literal('hybrid'), Type.Literal('vector'), Type.Literal('keyword')],
  { description: 'By vectors, by keywords, or by both.' },
)

export const searchBody = Type.Object(
  {
    query: Type.Unknown({ ...queryText, description: 'The text to search for.' }),
    filters: Type.Optional(
      Type.Array(filter, { maxItems: filtersMax, description: 'All of them must match.' }),
    ),
    top_k: Type.Optional(
      Type.Integer({
        description: 'Passages to return; absent: the configured `retrieval_k`.',
        minimum: 1,
        maximum: resultsMax,
      }),
    ),
    score_threshold: Type.Optional(
      Type.Number({ description: 'Applies to scores of the kinds `rerank` and `cosine`.' }),
    ),
    mode: Type.Optional({ ...searchMode, default: 'hybrid' }),
    rerank: Type.Optional(
      Type.Boolean({
        description: 'Whether a reranker orders the results; absent: if one is configured.',
      }),
    ),
  },
  { additionalProperties: false },
)

export function readSearch(body: unknown): Omit<SearchRequest, 'collections'> {
  if (Object.hasOwn(asRecord(body), 'filter')) {
    const message = '"filter" was removed; send "filters", a list of conditions.'
    throw new AppError('removed_field', message, { param: 'filter', code: 'filter_removed' })
  }
  const fields = readBody(searchBody, body)
  return {
    queries: [readQueryText(fields.query)],
    filters: (fields.filters ?? []).map(readFilter),
    topK: fields.top_k ?? null,
    scoreMin: fields.score_threshold ?? null,
    mode: fields.mode ?? 'hybrid',
    rerank: fields.rerank ?? null,
  }
}

export function readQueryText(query: unknown, param = 'query'): string {
  if (typeof query !== 'string') throw refused(param, `"${param}" must be a string.`)
  if (query.trim() === '') throw refused(param, `"${param}" must not be empty.`, 'query_empty')
  if (query.length <= queryCharsMax) return query.replaceAll('\0', ' ').toWellFormed()
  throw refused(
    param,
    `"${param}" must have at most ${queryCharsMax} characters.`,
    'query_too_long',
  )
}

function readFilter(filter: unknown, index: number): Filter {
  const path = `filters[${index}]`
  if (!isRecord(filter)) throw refused(path, `"${path}" must be an object.`)
  const unknown = Object.keys(filter).find((key) => !['field', 'operator', 'value'].includes(key))
  if (unknown !== undefined) throw unknownField(`${path}.${unknown}`)
  const field = readFieldName(filter['field'], `${path}.field`)
  return readCondition(field, filter, path)
}

export function readFieldName(field: unknown, param: string): string {
  if (typeof field === 'string' && fieldPattern.test(field)) return field
  throw refused(param, `"${param}" must be 1 to 64 letters, digits, "_", "." or "-".`)
}

function readCondition(field: string, { operator, value }: JsonObject, path: string): Filter {
  switch (operator) {
    case '==':
      if (isFilterValue(value)) return { field, operator, value }
      throw mismatch(`${path}.value`, 'must be a string with the operator "=="')
    case 'in':
      if (isFilterList(value)) return { field, operator, value }
      throw mismatch(
        `${path}.value`,
        `must be a list of 1 to ${filterValuesMax} strings with the operator "in"`,
      )
    default: {
      const param = `${path}.operator`
      throw refused(param, `"${param}" must be "==" or "in".`, 'unknown_operator')
    }
  }
}

export function isFilterValue(value: unknown): value is string {
  return typeof value === 'string' && value.length <= filterValueCharsMax
}

export function isFilterList(value: unknown): value is string[] {
  if (!Array.isArray(value) || value.length === 0) return false
  return value.length <= filterValuesMax && value.every(isFilterValue)
}

function mismatch(param: string, complaint: string): AppError {
  return refused(
    param,
    `"${param}" ${complaint}, of at most ${filterValueCharsMax} characters.`,
    'filter_type_mismatch',
  )
}
