import {
  type ObjectOptions,
  OptionalKind,
  type SchemaOptions,
  type Static,
  type TArray,
  type TLiteral,
  type TNull,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TUnion,
  Type,
} from '@sinclair/typebox'
import type { JsonObject } from '#lib/json.ts'

/**
 * Builders for the schemas of request bodies. A schema both validates a request and documents it:
 * its `description` is for the OpenAPI document, and the error message for an invalid field is
 * derived from its type and bounds. Optional fields may be null, which counts as absent, and unlisted
 * fields are ignored.
 */
export const string = (description: string) => Type.String({ description })
export const nonEmptyString = (description: string) => Type.String({ description, minLength: 1 })
export const boolean = (description: string) => Type.Boolean({ description })
export const arrayOf = <T extends TSchema>(items: T, description: string): TArray<T> =>
  Type.Array(items, { description })
export const stringOr = <T extends TSchema>(other: T, description: string) =>
  Type.Union([Type.String(), other], { description })
/** An object of which any field may be sent. */
export const anyObject = (description: string) =>
  Type.Unsafe<JsonObject>(Type.Object({}, { description, additionalProperties: true }))
export const oneOf = <const Value extends string>(
  values: readonly Value[],
  description: string,
): TUnion<TLiteral<Value>[]> =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description },
  )
export const number = (minimum: number, maximum: number, description: string) =>
  Type.Number({ description, minimum, maximum })
export const integer = (minimum: number, maximum: number, description: string) =>
  Type.Integer({ description, minimum, maximum })
export const integerFrom = (minimum: number, description: string) =>
  integer(minimum, Number.MAX_SAFE_INTEGER, description)

export function object<T extends TProperties>(fields: T, options: ObjectOptions = {}): TObject<T> {
  return Type.Object(fields, { additionalProperties: true, ...options })
}

/** An object without fields of interest beside its `type`. */
export const typed = (type: string, options: ObjectOptions = {}) =>
  object({ type: Type.Literal(type) }, options)

export function optional<T extends TSchema>(schema: T): TOptional<TUnion<[T, TNull]>> {
  const {
    description,
    default: fallback,
    [expectation]: expected,
    ...bare
  } = schema as TSchema & Expecting
  const variants: readonly TSchema[] = Array.isArray(bare['anyOf']) ? bare['anyOf'] : [bare]
  const choices = '$id' in schema ? [schema] : variants
  const options: SchemaOptions & Expecting = {
    ...(description === undefined || '$id' in schema ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(expected === undefined ? {} : { [expectation]: expected }),
  }
  const nullable: TSchema = Type.Union([...choices, Type.Null()], options)
  return Type.Optional(nullable) as TOptional<TUnion<[T, TNull]>>
}

const expectation: unique symbol = Symbol('expectation')
type Expecting = { readonly [expectation]?: string }

/** Completes the sentence "<field> must be …", where the type and bounds of a schema do not say it. */
export function expecting<T extends TSchema>(expected: string, schema: T): T {
  return { ...schema, [expectation]: expected }
}

/** Completes the sentence "<field> must be …". */
export function expectationOf(schema: TSchema & Expecting): string {
  const { [expectation]: expected } = schema
  if (expected !== undefined) return expected
  const variants = variantsOf(schema)
  if (variants.every(({ const: value }) => value !== undefined)) {
    const values = variants.map((variant) => variant['const'])
    return values.length === 1 ? `${values[0]}` : `one of ${values.join(', ')}`
  }
  return [...new Set(variants.map(describeType))].join(' or ')
}

function describeType(schema: TSchema & Expecting): string {
  if (schema[expectation] !== undefined) return schema[expectation]
  const { minimum, maximum, minLength, maxLength, minItems, maxItems } = schema
  switch (schema['type']) {
    case 'string':
      if (maxLength !== undefined) return `a string of ${minLength} to ${maxLength} characters`
      return minLength === 1 ? 'a non-empty string' : 'a string'
    case 'integer':
      return maximum < Number.MAX_SAFE_INTEGER
        ? `an integer from ${minimum} to ${maximum}`
        : `an integer of ${minimum} or more`
    case 'number':
      return `a number from ${minimum} to ${maximum}`
    case 'array': {
      const items = describeItems(schema['items'])
      if (maxItems === undefined)
        return `${minItems === 1 ? 'a non-empty' : 'an'} array of ${items}`
      return minItems === undefined
        ? `an array of at most ${maxItems} ${items}`
        : `an array of ${minItems} to ${maxItems} ${items}`
    }
    case 'boolean':
      return 'a boolean'
    default:
      return 'an object'
  }
}

function describeItems(items: TSchema): string {
  return variantsOf(items).every(({ type }) => type === 'string') ? 'strings' : 'objects'
}

function variantsOf(schema: TSchema): readonly TSchema[] {
  const variants: readonly TSchema[] = Array.isArray(schema['anyOf']) ? schema['anyOf'] : [schema]
  return variants.filter(({ type }) => type !== 'null')
}

/** The value of an object schema of which only the outermost level was validated. */
export type ShallowStatic<T extends TObject> = {
  readonly [Name in keyof Static<T>]: ShallowValue<Exclude<Static<T>[Name], null>>
}
type ShallowValue<T> = T extends readonly unknown[]
  ? readonly unknown[]
  : T extends object
    ? JsonObject
    : T

/**
 * The same object without the shapes of its nested objects and array items: those are validated one
 * by one, as soon as their `type` is known. A constant `type` was read to choose this schema.
 */
export function shallowSchema(schema: TObject): TObject {
  const fields = Object.entries<TSchema>(schema.properties).flatMap(([name, field]) => {
    const isConstant = variantsOf(field).every((variant) => 'const' in variant)
    return name === 'type' && isConstant ? [] : [[name, shallowField(field)] as const]
  })
  return Type.Object(Object.fromEntries(fields))
}

function shallowField(field: TSchema): TSchema {
  if (OptionalKind in field) return Type.Optional(shallowField(Type.Optional(field, false)))
  if (Array.isArray(field['anyOf'])) return Type.Union(field['anyOf'].map(shallowField))
  const { minItems, maxItems } = field
  switch (field['type']) {
    case 'array':
      return Type.Array(Type.Unknown(), {
        ...(minItems === undefined ? {} : { minItems }),
        ...(maxItems === undefined ? {} : { maxItems }),
      })
    case 'object':
      return Type.Object({})
    default:
      return field
  }
}
