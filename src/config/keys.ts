import { type TLiteral, type TObject, type TSchema, type TUnion, Type } from '@sinclair/typebox'
import { isRecord } from '#lib/json.ts'

/** Builders of keys. The unit is the last word of a name. */
type KeyOptions = { env?: string; secret?: true; former?: FormerKey }

/** Earlier names of a key, accepted for one release with a warning. */
export type FormerKey = { readonly key: string; readonly env: string }

export const text = (description: string, options: KeyOptions & { default?: string } = {}) =>
  Type.String({ minLength: 1, description, ...options })
export const whole = (
  description: string,
  options: KeyOptions & { default: number; minimum: number; maximum?: number },
) => Type.Integer({ description, ...options })
export const flag = (description: string, value: boolean) =>
  Type.Boolean({ description, default: value })
/** One of these values; the first is the default. */
export const choice = <const Value extends string>(
  description: string,
  values: readonly [Value, ...Value[]],
  options: KeyOptions = {},
): TUnion<TLiteral<Value>[]> =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description, default: values[0], ...options },
  )
export const section = <T extends Record<string, TSchema>>(description: string, keys: T) =>
  Type.Object(keys, { description, default: {}, additionalProperties: false })
export const entry = <T extends Record<string, TSchema>>(description: string, keys: T) =>
  Type.Object(keys, { description, additionalProperties: false })

/**
 * Marks a key, or every key of a section, that a reload of the file changes while the process runs.
 * All others keep the values of the start. Code reads such a key from `config` at each use, or its
 * module has a `reload`.
 */
export const reloading = <T extends TSchema>(schema: T): T => ({ ...schema, [reloads]: true })
export const reloadingKeys = <T extends Readonly<Record<string, TSchema>>>(keys: T): T =>
  Object.fromEntries(Object.entries(keys).map(([key, schema]) => [key, reloading(schema)])) as T
const reloads = Symbol('reloads')

export function isReloading(schema: TSchema): boolean {
  return reloads in schema
}

export function isObjectSchema(schema: TSchema): schema is TObject {
  return schema['type'] === 'object' && isRecord(schema['properties'])
}
