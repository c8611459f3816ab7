import { asRecord, type JsonObject } from '#lib/json.ts'
import { refused } from '#lib/unprocessable.ts'
import { isFilterList, isFilterValue, readFieldName } from '#retrieval/search/schema.ts'
import type { Filter } from '#retrieval/search/search.ts'

const filtersMax = 32

/**
 * The conditions of a vector store filter. A search requires all of its conditions, so only `and`,
 * and `or` over the values of one key, can be expressed. Throws an `AppError` of status 422.
 */
export function readStoreFilters(filter: unknown, path = 'filters'): readonly Filter[] {
  if (filter === undefined || filter === null) return []
  const filters = readNode(asRecord(filter), path)
  if (filters.length <= filtersMax) return filters
  throw refused(path, `"${path}" must have at most ${filtersMax} conditions.`)
}

function readNode(node: JsonObject, path: string): readonly Filter[] {
  switch (node['type']) {
    case 'eq':
    case 'in':
      return [readComparison(node, path)]
    case 'and':
      return readChildren(node, path).flat()
    case 'or':
      return [oneOf(readChildren(node, path).flat(), path)]
    default:
      throw refused(
        `${path}.type`,
        `"${path}.type" must be "eq", "in", "and" or "or".`,
        'unknown_operator',
      )
  }
}

function readChildren(node: JsonObject, path: string): readonly (readonly Filter[])[] {
  const children = node['filters']
  if (!Array.isArray(children) || children.length === 0) {
    throw refused(`${path}.filters`, `"${path}.filters" must be a list of filters.`)
  }
  return children.map((child, index) => readNode(asRecord(child), `${path}.filters[${index}]`))
}

function readComparison({ type, key, value }: JsonObject, path: string): Filter {
  const field = readFieldName(key, `${path}.key`)
  const param = `${path}.value`
  if (type === 'eq') {
    const text = textOf(value)
    if (isFilterValue(text)) return { field, operator: '==', value: text }
    throw refused(
      param,
      `"${param}" must be a text, a number or a boolean.`,
      'filter_type_mismatch',
    )
  }
  const texts = Array.isArray(value) ? value.map(textOf) : value
  if (isFilterList(texts)) return { field, operator: 'in', value: texts }
  throw refused(param, `"${param}" must be a list of 1 to 100 values.`, 'filter_type_mismatch')
}

/** Attributes are compared as text. */
function textOf(value: unknown): unknown {
  return typeof value === 'number' || typeof value === 'boolean' ? JSON.stringify(value) : value
}

function oneOf(filters: readonly Filter[], path: string): Filter {
  const fields = new Set(filters.map(({ field }) => field))
  const values = filters.flatMap(({ value }) => value)
  const [field] = fields
  if (field !== undefined && fields.size === 1 && isFilterList(values)) {
    return { field, operator: 'in', value: values }
  }
  throw refused(path, `"${path}" can only choose between up to 100 values of one key.`)
}
