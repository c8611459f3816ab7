import { type TSchema, Type } from '@sinclair/typebox'
import { isRecord } from '#lib/json.ts'
import { isObjectSchema } from './keys.ts'
import { type Config, configSchema } from './schema.ts'

/** The secret values of a configuration. */
export function secretsOf(config: Config): string[] {
  return collect(configSchema, config)
}

function collect(schema: TSchema, value: unknown): string[] {
  if (schema['secret'] === true) return textsIn(value)
  if (Array.isArray(value)) return value.flatMap((item) => collect(schema['items'] ?? {}, item))
  const properties: unknown = schema['properties']
  if (!isRecord(value) || !isRecord(properties)) return []
  return Object.entries(properties).flatMap(([key, property]) =>
    isRecord(property) ? collect(property as TSchema, value[key]) : [],
  )
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return isRecord(value) ? Object.values(value).flatMap(textsIn) : []
}

/** A copy for display, with secrets replaced by "[redacted]". */
export function redactConfig({ sources: _, formerNames: __, ...values }: Config): unknown {
  return redactBy(configSchema, values)
}

/** The value of a key for display. */
export function redactBy(schema: TSchema, value: unknown): unknown {
  if (value === undefined) return undefined
  if (schema['secret'] === true) {
    return isRecord(value) ? Object.fromEntries(Object.keys(value).map(hide)) : '[redacted]'
  }
  if (schema['type'] === 'array' && Array.isArray(value)) {
    return value.map((item) => redactBy(schema['items'], item))
  }
  if (!isObjectSchema(schema) || !isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      redactBy(schema.properties[key] ?? Type.Unknown(), item),
    ]),
  )
}

function hide(name: string): [string, string] {
  return [name, '[redacted]']
}
