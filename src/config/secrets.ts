import type { TSchema } from '@sinclair/typebox'
import { isRecord } from '#lib/json.ts'
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
