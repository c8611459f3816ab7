import { isRecord } from './json.ts'

/** No schema that a person or a code generator writes nests deeper; it bounds our recursion. */
const schemaDepthMax = 64
const placeCharsMax = 100

const typeNames = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']

const isTypeName = (value: unknown) => typeof value === 'string' && typeNames.includes(value)
const isText = (value: unknown) => typeof value === 'string'

/** What a keyword may hold, for those that schemas get wrong. */
const keywords: Readonly<Record<string, { holds: string; test: (value: unknown) => boolean }>> = {
  type: {
    holds: `one of ${typeNames.join(', ')}, or a list of them`,
    test: (value) => isTypeName(value) || (isFilledList(value) && value.every(isTypeName)),
  },
  required: {
    holds: 'a list of texts',
    test: (value) => Array.isArray(value) && value.every(isText),
  },
  enum: { holds: 'a list', test: Array.isArray },
  pattern: { holds: 'a text', test: isText },
  $ref: {
    holds: 'a place in the schema itself (#/…)',
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
 * Why a value cannot be a JSON Schema, or null where it is plausible. Upstreams compile schemas to
 * grammars and fail in many ways on a broken one, so what is plainly wrong is told before.
 */
export function findSchemaFault(schema: unknown, place = '#', depth = 1): string | null {
  if (typeof schema === 'boolean') return null
  const at = place.length > placeCharsMax ? `${place.slice(0, placeCharsMax)}…` : place
  if (!isRecord(schema)) return `${at} must be an object`
  if (depth > schemaDepthMax) return `it nests deeper than ${schemaDepthMax} schemas`

  for (const [keyword, { holds, test }] of Object.entries(keywords)) {
    if (keyword in schema && !test(schema[keyword])) return `${at}/${keyword} must be ${holds}`
  }
  const children: [place: string, schema: unknown][] = []
  for (const keyword of subschemas) {
    const value = schema[keyword]
    // Before draft 2020-12, `items` was a list of schemas as well.
    if (Array.isArray(value) && keyword === 'items') children.push(...entriesOf(value, 'items'))
    else if (value !== undefined) children.push([keyword, value])
  }
  for (const keyword of schemaLists) {
    const value = schema[keyword]
    if (value === undefined) continue
    if (!isFilledList(value)) return `${at}/${keyword} must be a list of schemas`
    children.push(...entriesOf(value, keyword))
  }
  for (const keyword of schemaMaps) {
    const value = schema[keyword]
    if (value === undefined) continue
    if (!isRecord(value)) return `${at}/${keyword} must be an object of schemas`
    children.push(...entriesOf(value, keyword))
  }
  for (const [child, value] of children) {
    const fault = findSchemaFault(value, `${place}/${child}`, depth + 1)
    if (fault !== null) return fault
  }
  return null
}

function isFilledList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length > 0
}

function entriesOf(value: object, keyword: string): [place: string, schema: unknown][] {
  return Object.entries(value).map(([key, schema]) => [`${keyword}/${key}`, schema])
}
