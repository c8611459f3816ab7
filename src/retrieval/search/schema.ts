import { Type } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, unknownField } from '#lib/unprocessable.ts'
import { readBody } from '#retrieval/read-body.ts'
import type { Filter, SearchRequest } from './search.ts'

/** The wire shapes of a search. */

/** A longer one is a document; no model reads so much of a question. */
const queryCharsMax = 10_000
export const resultsMax = 50
const filtersMax = 32
const filterValuesMax = 100
const filterValueCharsMax = 1_024
const fieldForm = /^[A-Za-z0-9_.-]{1,64}$/

/** Read by hand, for its codes. */
export const queryText = { type: 'string', minLength: 1, maxLength: queryCharsMax }
const filterText = { type: 'string', maxLength: filterValueCharsMax }

const filter = Type.Unknown({
  type: 'object',
  required: ['field', 'operator', 'value'],
  properties: {
    field: {
      description:
        'An attribute of the file, or `filename`, `mime_type`, `file_id`, `owner_id` or `folder_id` (and all below it).',
      type: 'string',
      pattern: fieldForm.source,
    },
    operator: { enum: ['==', 'in'] },
    value: {
      description: 'A text with `==`, a list of texts with `in`.',
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
  { description: 'By vectors, by words, or by both.' },
)

export const searchBody = Type.Object(
  {
    query: Type.Unknown({ ...queryText, description: 'What is looked for.' }),
    filters: Type.Optional(
      Type.Array(filter, { maxItems: filtersMax, description: 'All of them must hold.' }),
    ),
    top_k: Type.Optional(
      Type.Integer({
        description: 'How many passages; as `retrieval_k` says where it is absent.',
        minimum: 1,
        maximum: resultsMax,
      }),
    ),
    score_threshold: Type.Optional(
      Type.Number({ description: 'Only where scores mean something: `rerank` and `cosine`.' }),
    ),
    mode: Type.Optional({ ...searchMode, default: 'hybrid' }),
    rerank: Type.Optional(
      Type.Boolean({
        description: 'Whether a reranker orders what was found; absent: if there is one.',
      }),
    ),
  },
  { additionalProperties: false },
)

const searchChecker = compileChecker(searchBody)

/** What is asked of a collection; throws an `AppError` of status 422. */
export function readSearch(body: unknown, collection: string): SearchRequest {
  if (Object.hasOwn(asRecord(body), 'filter')) {
    const sentence = '"filter" is not taken any more; send "filters", a list of conditions.'
    throw new AppError('removed_field', sentence, { param: 'filter', code: 'filter_removed' })
  }
  const fields = readBody(searchChecker, body)
  return {
    collections: [collection],
    queries: [readQuery(fields.query)],
    filters: (fields.filters ?? []).map(readFilter),
    topK: fields.top_k ?? null,
    scoreMin: fields.score_threshold ?? null,
    mode: fields.mode ?? 'hybrid',
    rerank: fields.rerank ?? null,
  }
}

export function readQuery(query: unknown, param = 'query'): string {
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
  const field = readField(filter['field'], `${path}.field`)
  return readCondition(field, filter, path)
}

export function readField(field: unknown, param: string): string {
  if (typeof field === 'string' && fieldForm.test(field)) return field
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
