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

const searchBody = Type.Object(
  {
    query: Type.Unknown(),
    filters: Type.Optional(Type.Array(Type.Unknown(), { maxItems: filtersMax })),
    top_k: Type.Optional(Type.Integer({ minimum: 1, maximum: resultsMax })),
    score_threshold: Type.Optional(Type.Number()),
    mode: Type.Optional(
      Type.Union([Type.Literal('hybrid'), Type.Literal('vector'), Type.Literal('keyword')]),
    ),
    rerank: Type.Optional(Type.Boolean()),
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
