/** A JSON object, as far as it can be known before its fields were looked at. */
export type JsonObject = { [field: string]: unknown }

export function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object that a value is, or one without fields. */
export function asRecord(value: unknown): JsonObject {
  return isRecord(value) ? value : {}
}

/** The value of a JSON text, or undefined where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A field that is null counts as not given, as the SDKs mean it. */
export function withoutNulls(record: JsonObject): JsonObject {
  if (!Object.values(record).includes(null)) return record
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null))
}
