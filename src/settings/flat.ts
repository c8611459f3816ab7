import { isRecord, type JsonObject } from '#lib/json.ts'

/** Values by the paths of their keys: `files.max_bytes`. */
export type Flat = ReadonlyMap<string, unknown>

export function flatten(nested: object, path = ''): Flat {
  return new Map(
    Object.entries(nested).flatMap(([name, value]): (readonly [string, unknown])[] =>
      isRecord(value) ? [...flatten(value, `${path}${name}.`)] : [[path + name, value]],
    ),
  )
}

export function nest(flat: Flat): JsonObject {
  const nested: JsonObject = {}
  for (const [key, value] of flat) {
    const steps = key.split('.')
    const last = steps.pop() ?? key
    let place = nested
    for (const step of steps) {
      const inner = place[step]
      const section = isRecord(inner) ? inner : {}
      place[step] = section
      place = section
    }
    place[last] = value
  }
  return nested
}

/** A merge patch (RFC 7396) on values: null takes a key away. */
export function applyPatch(values: Flat, patch: Flat): Flat {
  const patched = new Map([...values, ...patch])
  for (const [key, value] of patch) {
    if (value === null) patched.delete(key)
  }
  return patched
}

/** The smallest merge patch that leads from one to the other. */
export function patchBetween(before: Flat, after: Flat): Flat {
  const gone = [...before.keys()].filter((key) => !after.has(key))
  const changed = [...after].filter(([key, value]) => !Bun.deepEquals(before.get(key), value, true))
  return new Map([...gone.map((key) => [key, null] as const), ...changed])
}
