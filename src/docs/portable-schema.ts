import { isRecord, type JsonObject } from '#lib/json.ts'

/**
 * The same schema in the form that client generators understand: a union of constants is an `enum`,
 * and a restriction of one schema is part of it instead of a second one in `allOf`.
 */
export function portableSchema(schema: JsonObject): JsonObject {
  return flattenRestriction(unionToEnum(schema))
}

function unionToEnum(schema: JsonObject): JsonObject {
  const { anyOf: members, ...rest } = schema
  if (!Array.isArray(members) || members.length === 0) return schema
  const constants = members.filter(isConstant)
  const [type, ...otherTypes] = new Set(constants.map((member) => member['type']))
  if (constants.length < 2 || otherTypes.length > 0) return schema
  const joined = { type, enum: constants.map((member) => member['const']) }
  const others = members.filter((member) => !isConstant(member))
  return others.length === 0 ? { ...joined, ...rest } : { ...rest, anyOf: [joined, ...others] }
}

/** With nothing else that would get lost. */
function isConstant(schema: unknown): schema is JsonObject {
  return (
    isRecord(schema) &&
    'const' in schema &&
    Object.keys(schema).every((field) => field === 'const' || field === 'type')
  )
}

function flattenRestriction(schema: JsonObject): JsonObject {
  const { allOf: parts, ...rest } = schema
  if (!Array.isArray(parts) || parts.length !== 2) return schema
  const [base, restriction] = parts
  if (!isRecord(base) || !isRecord(restriction) || '$ref' in base) return schema
  return Object.keys(restriction).join() === 'not' ? { ...base, ...restriction, ...rest } : schema
}

/** Schemas after those that they refer to, because generators read them in order. */
export function inOrderOfReference(schemas: JsonObject): JsonObject {
  const ordered: JsonObject = {}
  const seen = new Set<string>()
  const visit = (name: string) => {
    if (seen.has(name)) return
    seen.add(name)
    const references = JSON.stringify(schemas[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g)
    for (const [, other = ''] of references) visit(other)
    ordered[name] = schemas[name]
  }
  for (const name of Object.keys(schemas).sort()) visit(name)
  return ordered
}
