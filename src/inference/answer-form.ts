import { dereference, type Schema, validate } from '@cfworker/json-schema'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { OutputFormat } from './request.ts'

export type RequiredFormat = Exclude<OutputFormat, { type: 'text' }>

/**
 * Checks whether a text has the required format: JSON without surrounding text, an object or a value
 * of the schema. The schema is interpreted, never compiled. With an unusable schema (an unresolved
 * reference, too large, too slow) any valid JSON passes.
 */
export function createFormatCheck(format: RequiredFormat): (text: string) => boolean {
  if (format.type === 'json-object') return (text) => isRecord(parseJson(text))
  let isValid: ((value: unknown) => boolean) | undefined
  return (text) => {
    const value = parseJson(text)
    if (value === undefined) return false
    isValid ??= interpret(format.schema)
    return isValid(value)
  }
}

const schemaDepthMax = 64
const schemaNodesMax = 10_000
/** A small schema can require excessive work; a value without a fault by then is valid. */
const checkMsMax = 200

/** Keywords whose value is a schema, a list of schemas, or an object of schemas. */
const subschemas = new Map<string, 'one' | 'list' | 'map'>([
  ...['additionalProperties', 'unevaluatedProperties', 'propertyNames'].map(one),
  ...['items', 'additionalItems', 'unevaluatedItems', 'contains'].map(one),
  ...['not', 'if', 'then', 'else'].map(one),
  ...['allOf', 'anyOf', 'oneOf', 'prefixItems'].map((keyword) => [keyword, 'list'] as const),
  ...['$defs', 'definitions', 'properties', 'dependentSchemas'].map(
    (keyword) => [keyword, 'map'] as const,
  ),
])
const values = new Set([
  ...['$ref', '$id', '$anchor', '$recursiveRef', '$recursiveAnchor'],
  ...['const', 'enum', 'required', 'dependentRequired'],
])
const numbers = new Set([
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minContains', 'maxContains'],
  ...['minProperties', 'maxProperties'],
])
/** Not checked: regular expressions of clients may backtrack without end, and uniqueness is quadratic. */
const unchecked = new Set(['pattern', 'patternProperties', 'format', 'uniqueItems'])
/** Keywords that negate: ignoring keywords inside of them would refuse valid values. */
const negations = new Set([
  ...['not', 'if', 'then', 'else', 'maxContains', 'unevaluatedProperties', 'unevaluatedItems'],
])

function one(keyword: string) {
  return [keyword, 'one'] as const
}

/** Returns a validator for the schema. */
function interpret(schema: JsonObject): (value: unknown) => boolean {
  let deadlineMs = 0
  const checkDeadline = () => {
    if (performance.now() > deadlineMs) throw new Error('the check exceeds its time limit')
  }
  try {
    const state = { checkDeadline, nodesLeft: schemaNodesMax, isLoose: false }
    const exact = copyObject(schema, state, 1)
    state.nodesLeft = schemaNodesMax
    const usable = state.isLoose ? copyObject(schema, state, 1) : exact
    const lookup = dereference(usable)
    return (value) => {
      deadlineMs = performance.now() + checkMsMax
      try {
        return validate(value, usable, '2020-12', lookup).valid
      } catch {
        return true
      }
    }
  } catch {
    return () => true
  }
}

type CopyState = {
  /** Called for each validation of a value against a schema. */
  readonly checkDeadline: () => void
  nodesLeft: number
  /** Whether an unchecked keyword was found: then a copy without negations is made. */
  isLoose: boolean
}

function copySchema(schema: unknown, state: CopyState, depth: number): Schema | boolean {
  state.nodesLeft--
  if (typeof schema === 'boolean') return schema
  if (isRecord(schema) && depth <= schemaDepthMax && state.nodesLeft >= 0) {
    return copyObject(schema, state, depth)
  }
  throw new Error('the schema is unusable')
}

/** Copies the schema without unchecked keywords, and with a guard that runs at each use. */
function copyObject(schema: JsonObject, state: CopyState, depth: number): Schema {
  const { isLoose } = state
  const copyInner = (inner: unknown) => copySchema(inner, state, depth + 1)
  const copy: Schema = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (unchecked.has(keyword)) state.isLoose = true
    if (isLoose && isNegation(keyword, schema)) continue
    if (values.has(keyword) || (numbers.has(keyword) && typeof value === 'number')) {
      copy[keyword] = value
    }
    if (subschemas.has(keyword)) {
      copy[isLoose && keyword === 'oneOf' ? 'anyOf' : keyword] = copyAll(keyword, value, copyInner)
    }
  }
  Object.defineProperty(copy, 'type', {
    get() {
      state.checkDeadline()
      return schema['type']
    },
  })
  return copy
}

/** Whether ignoring unchecked keywords would make this keyword refuse valid values. */
function isNegation(keyword: string, schema: JsonObject): boolean {
  if (keyword === 'additionalProperties') return 'patternProperties' in schema
  // `oneOf` is copied as `anyOf`, unless the schema has both.
  if (keyword === 'oneOf') return 'anyOf' in schema
  return negations.has(keyword)
}

function copyAll(keyword: string, value: unknown, copy: (inner: unknown) => unknown): unknown {
  const shape = subschemas.get(keyword)
  if (shape === 'map' && isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, copy(inner)]))
  }
  // Before draft 2020-12, `items` was a list as well.
  const isList = Array.isArray(value) && (shape === 'list' || keyword === 'items')
  return isList ? value.map(copy) : copy(value)
}
