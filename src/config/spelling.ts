import { isRecord } from '#lib/json.ts'

/** `heartbeatMs` of the code as `heartbeat_ms` of the file. */
export function toSnake(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

export function toCamel(key: string): string {
  return key.replace(/_([a-z])/g, (_found, letter: string) => letter.toUpperCase())
}

/** With the snake_case keys of the file. */
export function toFileKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toFileKeys)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [toSnake(key), toFileKeys(item)]),
  )
}
