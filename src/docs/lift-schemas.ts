import { isRecord, type JsonObject } from '#lib/json.ts'
import { pascalCase } from './operation-id.ts'
import { portableSchema } from './portable-schema.ts'

/** Fields with example values; a `$id` in them is not a schema name. */
const valueFields = new Set(['const', 'default', 'enum', 'example', 'examples', 'required'])
/** Properties that tell the objects of a union apart. */
const tags = ['type', 'kind', 'object']
/** Fields with a schema for each name. */
const mapFields = new Set(['properties', 'patternProperties', '$defs'])

/**
 * Moves each schema with an `$id` to `schemas` under that name, and each object that is one choice of
 * a union under a derived name, because generators number choices without a name and lose some of
 * them. A reference stays in their place. Throws if two different schemas have the same name.
 */
export function createSchemaLift(schemas: JsonObject) {
  /** `place` is the name that a schema here gets if it needs one. */
  function lift(schema: unknown, place: string): unknown {
    if (Array.isArray(schema)) return schema.map((one) => lift(one, place))
    if (!isRecord(schema)) return schema
    const { $id: id, ...rest } = schema
    const isOwn = typeof id === 'string'
    const name = isOwn ? id : place
    const lifted = portableSchema(
      Object.fromEntries(
        Object.entries(rest).map(([field, value]) => [field, liftField(field, value, name)]),
      ),
    )
    const named = withNamedChoices(lifted, { name, isTaken: isOwn })
    return isOwn ? keep(id, named) : named
  }

  function liftField(field: string, value: unknown, name: string): unknown {
    if (field === '$ref') return fullReference(value)
    if (valueFields.has(field)) return value
    if (mapFields.has(field) && isRecord(value)) {
      return Object.fromEntries(
        Object.entries(value).map(([key, one]) => [key, lift(one, name + pascalCase([key]))]),
      )
    }
    return lift(value, field === 'items' ? `${name}Item` : name)
  }

  /** The only object of a union gets the name of the union; others are named by their `type`. */
  function withNamedChoices(schema: JsonObject, place: { name: string; isTaken: boolean }) {
    const { anyOf: choices } = schema
    if (!Array.isArray(choices)) return schema
    const isOnly = !place.isTaken && choices.filter(hasFields).length === 1
    const anyOf = choices.map((choice) => {
      if (!hasFields(choice)) return choice
      return keep(isOnly ? place.name : place.name + nameOfChoice(choice, place.name), choice)
    })
    return { ...schema, anyOf, ...discriminatorOf(anyOf) }
  }

  function keep(name: string, schema: JsonObject): JsonObject {
    const known = schemas[name]
    if (known !== undefined && !Bun.deepEquals(known, schema)) {
      throw new Error(`Two different schemas have the $id "${name}".`)
    }
    schemas[name] = schema
    return { $ref: fullReference(name) }
  }

  /** Of a union of objects that a constant `type` tells apart. */
  function discriminatorOf(choices: readonly JsonObject[]) {
    const mappings = tags.flatMap((propertyName) => {
      const mapping: Record<string, string> = {}
      for (const { $ref: reference } of choices) {
        const values = valuesOf(schemas[String(reference).replace(/^.*\//, '')], propertyName)
        if (values.length === 0 || values.some((value) => value in mapping)) return []
        for (const value of values) mapping[value] = String(reference)
      }
      return [{ discriminator: { propertyName, mapping } }]
    })
    return mappings[0] ?? {}
  }

  /** Lifts the schema in every field `schema` of a part of the document. */
  return function liftSchemasOf(part: unknown, name: string): unknown {
    if (Array.isArray(part)) return part.map((one) => liftSchemasOf(one, name))
    if (!isRecord(part)) return part
    return Object.fromEntries(
      Object.entries(part).map(([field, value]) => {
        if (field === 'schema') return [field, lift(value, name)]
        const isRequest = field === 'requestBody'
        const isResponse = field === 'responses'
        const place = name + (isRequest ? 'Request' : isResponse ? 'Response' : '')
        return [field, valueFields.has(field) ? value : liftSchemasOf(value, place)]
      }),
    )
  }
}

/** An object schema in place, which is not any object. */
function hasFields(schema: JsonObject): boolean {
  return isRecord(schema['properties']) && Object.keys(schema['properties']).length > 0
}

function nameOfChoice(choice: JsonObject, union: string): string {
  const [values] = tags.map((tag) => valuesOf(choice, tag)).filter(({ length }) => length > 0)
  if (values !== undefined) return values.map((value) => pascalCase([value])).join('Or')
  throw new Error(`A choice of ${union} needs an $id: ${JSON.stringify(choice)}`)
}

/** The values of a constant property; empty: any. */
function valuesOf(schema: unknown, property: string): string[] {
  if (!isRecord(schema) || !isRecord(schema['properties'])) return []
  const value = schema['properties'][property]
  if (!isRecord(value)) return []
  const values = Array.isArray(value['enum']) ? value['enum'] : [value['const']]
  return values.filter((one) => typeof one === 'string')
}

/** A recursive schema refers to its own `$id`. */
function fullReference(to: unknown): unknown {
  return typeof to !== 'string' || to.startsWith('#') ? to : `#/components/schemas/${to}`
}
