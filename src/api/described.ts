import {
  type ObjectOptions,
  OptionalKind,
  type TObject,
  type TProperties,
  type TSchema,
  Type,
} from '@sinclair/typebox'
import { optional } from './request-schema.ts'

/** The same object whose optional fields may be null, which counts as absent. */
export function withNulls<T extends TObject>(schema: T): TObject {
  const fields = Object.entries<TSchema>(schema.properties).map(([name, field]) => [
    name,
    OptionalKind in field ? optional(Type.Optional(field, false)) : field,
  ])
  return { ...schema, properties: Object.fromEntries(fields) }
}

/** Objects with any other `type` than these. */
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
