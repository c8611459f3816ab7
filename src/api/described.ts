import {
  type ObjectOptions,
  OptionalKind,
  type TObject,
  type TProperties,
  type TSchema,
  Type,
} from '@sinclair/typebox'

/**
 * What the document says of each field that a parser reads: some words beside the parser's own
 * bounds, or a whole shape in place of one that is read later. A field that is only read to be
 * refused is null, and is not told.
 */
type Said<T extends TObject> = {
  readonly [Name in keyof T['properties']]-?: string | TSchema | null
}

/**
 * An object as the document tells of it, made of the schema by which it is read, so that no field is
 * forgotten. Optional fields may be null, which counts as not given, and other fields pass. `own` are
 * fields that the schema leaves to others, such as the `type` by which objects are told apart.
 */
export function describeObject<T extends TObject>(
  read: T,
  said: Said<T>,
  { own = {}, ...options }: ObjectOptions & { own?: TProperties } = {},
): TObject {
  const fields = Object.entries<TSchema>(read.properties).flatMap(([name, field]) => {
    const told = said[name]
    if (told === undefined || told === null) return []
    const schema = typeof told === 'string' ? { ...field, description: told } : told
    return [[name, OptionalKind in field ? orNull(schema) : schema] as const]
  })
  return Type.Object(
    { ...own, ...Object.fromEntries(fields) },
    { additionalProperties: true, ...options },
  )
}

/** The same fields, of which the optional ones may be null: such a field counts as not given. */
export function withNulls<T extends TObject>(schema: T): TObject {
  const fields = Object.entries<TSchema>(schema.properties).map(([name, field]) => [
    name,
    OptionalKind in field ? orNull(field) : field,
  ])
  return { ...schema, properties: Object.fromEntries(fields) }
}

/** Objects of any other type than these, of which no more is known. */
export function ofOtherType(
  known: readonly TSchema[],
  options: ObjectOptions,
  fields: TProperties = {},
): TObject {
  const types = known.flatMap(({ properties }) => {
    const type: TSchema | undefined = properties?.['type']
    return type === undefined ? [] : [Type.Optional(type, false)]
  })
  return Type.Object(
    { type: Type.Intersect([Type.String(), Type.Not(Type.Union(types))]), ...fields },
    { additionalProperties: true, ...options },
  )
}

function orNull(schema: TSchema): TSchema {
  const { description, default: usual, ...bare } = Type.Optional(schema, false)
  const choices: readonly TSchema[] =
    '$id' in bare || !Array.isArray(bare['anyOf']) ? [bare] : bare['anyOf']
  const words = {
    ...(description === undefined ? {} : { description }),
    ...(usual === undefined ? {} : { default: usual }),
  }
  return Type.Optional(Type.Union([...choices, Type.Null()], words))
}
