import { isRecord, type JsonObject } from '#lib/json.ts'

/**
 * Converts a JSON Schema to the subset from which the package builds grammars. Constraints outside the
 * subset are dropped: the grammar guides the model, and the output is validated afterwards.
 */
export function gbnfSchema(schema: unknown, depth = 0): JsonObject {
  if (!isRecord(schema) || depth > depthMax) return {}
  const description = typeof schema['description'] === 'string' ? pick(schema, ['description']) : {}
  return {
    ...description,
    ...convertType(schema, depth + 1),
    ...convertDefinitions(schema, depth + 1),
  }
}

const depthMax = 64

function convertType(schema: JsonObject, depth: number): JsonObject {
  const choices = schema['oneOf'] ?? schema['anyOf']
  if (Array.isArray(choices)) return { oneOf: choices.map((choice) => gbnfSchema(choice, depth)) }
  if (typeof schema['$ref'] === 'string') return { $ref: localReference(schema['$ref']) }
  if (isScalar(schema['const'])) return pick(schema, ['const'])
  const values = schema['enum']
  if (Array.isArray(values)) return values.every(isScalar) ? { enum: values } : {}
  const type = schema['type'] ?? guessType(schema)
  if (Array.isArray(type)) return convertTypes(schema, type, depth)
  switch (type) {
    case 'object':
      return convertObject(schema, depth)
    case 'array':
      return convertArray(schema, depth)
    case 'string':
      return convertString(schema)
    default:
      return type === undefined ? {} : { type }
  }
}

function convertTypes(schema: JsonObject, types: readonly unknown[], depth: number): JsonObject {
  const simple = ['string', 'number', 'integer', 'boolean', 'null']
  if (types.every((type) => simple.includes(String(type)))) return { type: types }
  return { oneOf: types.map((type) => gbnfSchema({ ...schema, type }, depth)) }
}

/** A grammar always produces every property, so `required` has no effect. */
function convertObject(schema: JsonObject, depth: number): JsonObject {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {}
  const names = Object.entries(properties)
  const further = schema['additionalProperties']
  const isOpen = further === undefined ? schema['properties'] === undefined : further !== false
  return {
    type: 'object',
    properties: Object.fromEntries(names.map(([name, each]) => [name, gbnfSchema(each, depth)])),
    additionalProperties: isRecord(further) ? gbnfSchema(further, depth) : isOpen,
    ...pick(schema, isOpen ? ['minProperties', 'maxProperties'] : []),
  }
}

function convertArray(schema: JsonObject, depth: number): JsonObject {
  const items = schema['items']
  const first = schema['prefixItems']
  return {
    type: 'array',
    ...(isRecord(items) ? { items: gbnfSchema(items, depth) } : {}),
    ...(Array.isArray(first) ? { prefixItems: first.map((each) => gbnfSchema(each, depth)) } : {}),
    ...pick(schema, ['minItems', 'maxItems']),
  }
}

const knownFormats = ['date-time', 'time', 'date']

function convertString(schema: JsonObject): JsonObject {
  const isKnown = knownFormats.includes(String(schema['format']))
  return { type: 'string', ...pick(schema, isKnown ? ['format'] : ['minLength', 'maxLength']) }
}

/** Older schemas use `definitions` instead of `$defs`. */
function convertDefinitions(schema: JsonObject, depth: number): JsonObject {
  const entries = [schema['definitions'], schema['$defs']].filter(isRecord).flatMap(Object.entries)
  if (entries.length === 0) return {}
  const $defs = Object.fromEntries(entries.map(([name, each]) => [name, gbnfSchema(each, depth)]))
  return { $defs }
}

function localReference(reference: string): string {
  return reference.replace(/^#\/definitions\//, '#/$defs/')
}

function guessType(schema: JsonObject): string | undefined {
  if (isRecord(schema['properties'])) return 'object'
  return schema['items'] === undefined ? undefined : 'array'
}

function isScalar(value: unknown): boolean {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

/** The fields that are present. */
function pick(schema: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.filter((name) => schema[name] !== undefined).map((name) => [name, schema[name]]),
  )
}
