/** A JSON object whose fields were not validated yet. */
export type JsonObject = { [field: string]: unknown }

export function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value if it is an object; otherwise an empty object. */
export function asRecord(value: unknown): JsonObject {
  return isRecord(value) ? value : {}
}

/** The parsed value; undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Drops null fields: SDKs send null for absent ones. */
export function withoutNulls(record: JsonObject): JsonObject {
  if (!hasNull(record)) return record
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null))
}

export function omitFields(record: JsonObject, fields: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !fields.includes(name)))
}

/** Cheaper than a list of the values, for every object of a request. */
function hasNull(record: JsonObject): boolean {
  for (const name in record) if (record[name] === null) return true
  return false
}
