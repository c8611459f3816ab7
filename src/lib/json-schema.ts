import { isRecord } from './json.ts'

/** Bounds the recursion; schemas written by people or code generators are flatter. */
const schemaDepthMax = 64
const pathCharsMax = 100

const typeNames = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']

const isTypeName = (value: unknown) => typeof value === 'string' && typeNames.includes(value)
const isString = (value: unknown) => typeof value === 'string'

/** The values of keywords that are often wrong. */
const keywords: Readonly<Record<string, { expected: string; test: (value: unknown) => boolean }>> =
  {
    type: {
      expected: `one of ${typeNames.join(', ')}, or a list of them`,
      test: (value) => isTypeName(value) || (isNonEmptyList(value) && value.every(isTypeName)),
    },
    required: {
      expected: 'a list of strings',
      test: (value) => Array.isArray(value) && value.every(isString),
    },
    enum: { expected: 'a list', test: Array.isArray },
    pattern: { expected: 'a string', test: isString },
    $ref: {
      expected: 'a path within the schema (#/…)',
      test: (value) => typeof value === 'string' && value.startsWith('#'),
    },
  }

const schemaMaps = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']
const schemaLists = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const subschemas = [
  'items',
  'additionalItems',
  'unevaluatedItems',
  'contains',
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
]

/**
 * The reason why a value is not a JSON Schema; null if it is plausible. Upstreams compile schemas to
 * grammars and fail on invalid ones in many ways, so obvious errors are reported first.
 */
export function findSchemaFault(schema: unknown, path = '#', depth = 1): string | null {
  if (typeof schema === 'boolean') return null
  const at = path.length > pathCharsMax ? `${path.slice(0, pathCharsMax)}…` : path
  if (!isRecord(schema)) return `${at} must be an object`
  if (depth > schemaDepthMax) return `it nests deeper than ${schemaDepthMax} schemas`

  for (const [keyword, { expected, test }] of Object.entries(keywords)) {
    if (keyword in schema && !test(schema[keyword])) return `${at}/${keyword} must be ${expected}`
  }
  const children: [path: string, schema: unknown][] = []
  for (const keyword of subschemas) {
    const value = schema[keyword]
    // Before draft 2020-12, `items` was a list of schemas as well.
    if (Array.isArray(value) && keyword === 'items') children.push(...entriesOf(value, 'items'))
    else if (value !== undefined) children.push([keyword, value])
  }
  for (const keyword of schemaLists) {
    const value = schema[keyword]
    if (value === undefined) continue
    if (!isNonEmptyList(value)) return `${at}/${keyword} must be a list of schemas`
    children.push(...entriesOf(value, keyword))
  }
  for (const keyword of schemaMaps) {
    const value = schema[keyword]
    if (value === undefined) continue
    if (!isRecord(value)) return `${at}/${keyword} must be an object of schemas`
    children.push(...entriesOf(value, keyword))
  }
  for (const [child, value] of children) {
    const fault = findSchemaFault(value, `${path}/${child}`, depth + 1)
    if (fault !== null) return fault
  }
  return null
}

function isNonEmptyList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length > 0
}

function entriesOf(value: object, keyword: string): [path: string, schema: unknown][] {
  return Object.entries(value).map(([key, schema]) => [`${keyword}/${key}`, schema])
}
