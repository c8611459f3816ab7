import { isRecord, type JsonObject } from '#lib/json.ts'

/** Fields with example values; a `$id` in them is not a schema name. */
const valueFields = new Set(['const', 'default', 'enum', 'example', 'examples'])

/**
 * Moves each schema with an `$id` to `components.schemas` under that name and leaves a reference
 * in its place. Throws if two different schemas have the same name.
 */
export function createSchemaLift(schemas: JsonObject) {
  function lift(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map(lift)
    if (!isRecord(schema)) return schema
    const { $id: name, ...rest } = schema
    const lifted = Object.fromEntries(
      Object.entries(rest).map(([field, value]) => [
        field,
        field === '$ref' ? fullReference(value) : valueFields.has(field) ? value : lift(value),
      ]),
    )
    return typeof name === 'string' ? keep(name, lifted) : lifted
  }

  function keep(name: string, schema: JsonObject): JsonObject {
    const known = schemas[name]
    if (known !== undefined && !Bun.deepEquals(known, schema)) {
      throw new Error(`Two different schemas have the $id "${name}".`)
    }
    schemas[name] = schema
    return { $ref: fullReference(name) }
  }

  /** Lifts the schema in every field `schema` of a part of the document. */
  return function liftSchemasOf(part: unknown): unknown {
    if (Array.isArray(part)) return part.map(liftSchemasOf)
    if (!isRecord(part)) return part
    return Object.fromEntries(
      Object.entries(part).map(([field, value]) => {
        if (field === 'schema') return [field, lift(value)]
        return [field, valueFields.has(field) ? value : liftSchemasOf(value)]
      }),
    )
  }
}

/** A recursive schema refers to its own `$id`. */
function fullReference(to: unknown): unknown {
  return typeof to !== 'string' || to.startsWith('#') ? to : `#/components/schemas/${to}`
}
