import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord, type JsonObject } from '#lib/json.ts'

/**
 * The published interface document of Open Responses, which is not part of the repository. Tests
 * that need it use `test.skipIf(!openResponsesExists)`.
 */
const path = join(import.meta.dir, '../../../shared/open-responses/openapi.json')

export const openResponsesExists = existsSync(path)

const document = openResponsesExists ? object(JSON.parse(readFileSync(path, 'utf8'))) : {}
const schemas = object(object(document['components'])['schemas'])
const eventSchemas = new Map(
  list(Object.values(schemas))
    .filter((schema) => 'sequence_number' in object(schema['properties']))
    .map((schema) => [typeOf(schema), schema]),
)

/** The faults of a Response object as `path: complaint`. */
export function faultsOfResponse(response: unknown): string[] {
  return faultsOf(response, named('ResponseResource'), '')
}

export function faultsOfCompaction(compaction: unknown): string[] {
  return faultsOf(compaction, named('CompactResource'), '')
}

/** Of an item in a list or in the output of a response. */
export function faultsOfItem(item: unknown): string[] {
  return faultsOf(item, named('ItemField'), '')
}

/** The faults of a stream event; an unpublished event type is a fault. */
export function faultsOfEvent(event: JsonObject): string[] {
  const schema = eventSchemas.get(event['type'])
  if (schema === undefined) return [`: no event is called ${event['type']}`]
  return faultsOf(event, schema, '')
}

function named(name: string): JsonObject {
  const schema = schemas[name]
  if (!isRecord(schema)) throw new Error(`there is no schema ${name}`)
  return schema
}

/** The keywords that the document uses: types, enums, bounds, objects, arrays and unions. */
function faultsOf(value: unknown, schema: JsonObject, at: string): string[] {
  const faults: string[] = []
  const { $ref: ref, type, enum: choices, items, allOf, anyOf, oneOf } = schema
  if (typeof ref === 'string') {
    faults.push(...faultsOf(value, named(ref.replace('#/components/schemas/', '')), at))
  }
  if (type !== undefined && !isOfType(value, type)) return [`${at}: is not of type ${type}`]
  if (Array.isArray(choices) && !choices.includes(value)) {
    faults.push(`${at}: ${JSON.stringify(value)} is not one of ${choices.join(', ')}`)
  }
  for (const part of list(allOf)) faults.push(...faultsOf(value, part, at))
  if (anyOf !== undefined) faults.push(...faultsOfUnion(value, list(anyOf), at))
  if (oneOf !== undefined) faults.push(...faultsOfUnion(value, list(oneOf), at))
  if (isRecord(value)) faults.push(...faultsOfFields(value, schema, at))
  if (Array.isArray(value) && isRecord(items)) {
    value.forEach((item, index) => {
      faults.push(...faultsOf(item, items, `${at}[${index}]`))
    })
  }
  return [...faults, ...faultsOfBounds(value, schema, at)]
}

function faultsOfFields(value: JsonObject, schema: JsonObject, at: string): string[] {
  const { required = [], additionalProperties: further } = schema
  const fields = object(schema['properties'])
  const missing = Array.isArray(required) ? required.filter((name) => !(name in value)) : []
  return [
    ...missing.map((name) => `${at}.${name}: is missing`),
    ...Object.entries(value).flatMap(([name, field]) => {
      const known = fields[name] ?? further
      return isRecord(known) ? faultsOf(field, known, `${at}.${name}`) : []
    }),
  ]
}

/** One variant must match; a variant with the same `type` reports its faults. */
function faultsOfUnion(value: unknown, variants: readonly JsonObject[], at: string): string[] {
  if (variants.some((variant) => faultsOf(value, variant, at).length === 0)) return []
  const said = isRecord(value) ? value['type'] : undefined
  const meant = said === undefined ? [] : variants.filter((one) => typeOf(one) === said)
  const likely = meant.length > 0 ? meant : variants.filter((one) => one['type'] !== 'null')
  const [variant = variants[0]] = likely
  if (variant === undefined || likely.length > 1) return [`${at}: fits no variant`]
  return faultsOf(value, variant, at)
}

function faultsOfBounds(value: unknown, schema: JsonObject, at: string): string[] {
  const size = typeof value === 'number' ? value : sizeOf(value)
  const bounds = ['minimum', 'minLength', 'minItems', 'maximum', 'maxLength', 'maxItems']
  return bounds.flatMap((name) => {
    const bound = schema[name]
    if (typeof bound !== 'number' || size === null) return []
    return (name.startsWith('min') ? size < bound : size > bound) ? [`${at}: ${name} ${bound}`] : []
  })
}

function sizeOf(value: unknown): number | null {
  return typeof value === 'string' || Array.isArray(value) ? value.length : null
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'integer':
      return Number.isInteger(value)
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isRecord(value)
    default:
      return typeof value === type
  }
}

/** The constant of the `type` field of a schema. */
function typeOf(schema: JsonObject): unknown {
  const { $ref: ref } = schema
  if (typeof ref === 'string') return typeOf(named(ref.replace('#/components/schemas/', '')))
  const { enum: choices } = object(object(schema['properties'])['type'])
  return Array.isArray(choices) && choices.length === 1 ? choices[0] : undefined
}

function object(value: unknown): JsonObject {
  return isRecord(value) ? value : {}
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
