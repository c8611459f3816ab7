import { dereference, type Schema, validate } from '@cfworker/json-schema'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { OutputFormat } from './request.ts'

export type DemandedForm = Exclude<OutputFormat, { type: 'text' }>

/**
 * Tells whether an answer has the form that was demanded: JSON without anything around it, an object
 * or what the schema describes. The schema is interpreted, never compiled. A schema that cannot be
 * used (a reference that leads nowhere, too large, too slow) is no reason to fail what parses.
 */
export function createFormCheck(form: DemandedForm): (answer: string) => boolean {
  if (form.type === 'json-object') return (answer) => isRecord(parseJson(answer))
  let fits: ((value: unknown) => boolean) | undefined
  return (answer) => {
    const value = parseJson(answer)
    if (value === undefined) return false
    fits ??= interpret(form.schema)
    return fits(value)
  }
}

const schemaDepthMax = 64
const schemaNodesMax = 10_000
/** A small schema can ask for endless work; what was not found wrong by then holds. */
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
/**
 * Not checked: a regular expression of the caller's or of a format may run for ever, and comparing
 * every item with every other takes long.
 */
const unchecked = new Set(['pattern', 'patternProperties', 'format', 'uniqueItems'])
/** Without those a schema accepts more than it should, and these would make less of that. */
const denials = new Set([
  ...['not', 'if', 'then', 'else', 'maxContains', 'unevaluatedProperties', 'unevaluatedItems'],
])

function one(keyword: string) {
  return [keyword, 'one'] as const
}

/** What tells of a value whether it fits. */
function interpret(schema: JsonObject): (value: unknown) => boolean {
  let dueAtMs = 0
  const visit = () => {
    if (performance.now() > dueAtMs) throw new Error('the check takes too long')
  }
  try {
    const copying = { visit, nodesLeft: schemaNodesMax, isLoose: false }
    const exact = copyObject(schema, copying, 1)
    copying.nodesLeft = schemaNodesMax
    const usable = copying.isLoose ? copyObject(schema, copying, 1) : exact
    const lookup = dereference(usable)
    return (value) => {
      dueAtMs = performance.now() + checkMsMax
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

type Copying = {
  /** Called each time that a value is held against a schema. */
  readonly visit: () => void
  nodesLeft: number
  /** Whether something unchecked was met: then a copy is made that denies nothing. */
  isLoose: boolean
}

function copySchema(schema: unknown, copying: Copying, depth: number): Schema | boolean {
  copying.nodesLeft--
  if (typeof schema === 'boolean') return schema
  if (isRecord(schema) && depth <= schemaDepthMax && copying.nodesLeft >= 0) {
    return copyObject(schema, copying, depth)
  }
  throw new Error('the schema cannot be used')
}

/** The schema without what is not checked, and with a guard that each use of it passes. */
function copyObject(schema: JsonObject, copying: Copying, depth: number): Schema {
  const { isLoose } = copying
  const copyInner = (inner: unknown) => copySchema(inner, copying, depth + 1)
  const copy: Schema = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (unchecked.has(keyword)) copying.isLoose = true
    if (isLoose && isDenial(keyword, schema)) continue
    if (values.has(keyword) || (numbers.has(keyword) && typeof value === 'number')) {
      copy[keyword] = value
    }
    if (subschemas.has(keyword)) {
      copy[isLoose && keyword === 'oneOf' ? 'anyOf' : keyword] = copyAll(keyword, value, copyInner)
    }
  }
  Object.defineProperty(copy, 'type', {
    get() {
      copying.visit()
      return schema['type']
    },
  })
  return copy
}

/** Whether a keyword would turn what is too much accepted elsewhere into a refusal. */
function isDenial(keyword: string, schema: JsonObject): boolean {
  if (keyword === 'additionalProperties') return 'patternProperties' in schema
  // As a list of which one must fit, it may stand under the name of the other.
  if (keyword === 'oneOf') return 'anyOf' in schema
  return denials.has(keyword)
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
