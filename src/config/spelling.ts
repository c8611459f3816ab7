import type { TSchema } from '@sinclair/typebox'
import { isRecord } from '#lib/json.ts'
import { isObjectSchema } from './keys.ts'

/** `heartbeatMs` of the code as `heartbeat_ms` of the file. */
export function toSnake(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

export function toCamel(key: string): string {
  return key.replace(/_([a-z])/g, (_found, letter: string) => letter.toUpperCase())
}

/** With the snake_case keys of the file; the names in tables, such as headers, stay. */
export function toFileKeys(schema: TSchema, value: unknown): unknown {
  if (schema['type'] === 'array' && Array.isArray(value)) {
    return value.map((item) => toFileKeys(schema['items'], item))
  }
  if (!isObjectSchema(schema) || !isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const known = schema.properties[key]
      return known === undefined ? [key, item] : [toSnake(key), toFileKeys(known, item)]
    }),
  )
}
