import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { refused, unknownField } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import { keysOfSection, settingsByKey } from './schema.ts'

/** Values by the path of their setting: `files.max_bytes`. */
export type Flat = ReadonlyMap<string, unknown>

export function flatten(nested: object, path = ''): Flat {
  return new Map(
    Object.entries(nested).flatMap(([name, value]): (readonly [string, unknown])[] =>
      isRecord(value) && !settingsByKey.has(path + name)
        ? [...flatten(value, `${path}${name}.`)]
        : [[path + name, value]],
    ),
  )
}

export function nest(flat: Flat): JsonObject {
  const root: JsonObject = {}
  for (const [key, value] of flat) {
    const steps = key.split('.')
    const last = steps.pop() ?? key
    let parent = root
    for (const step of steps) {
      const child = parent[step]
      const section = isRecord(child) ? child : {}
      parent[step] = section
      parent = section
    }
    parent[last] = value
  }
  return root
}

/**
 * A merge patch (RFC 7396): null removes a key, unless it has to be kept to switch a setting off. An
 * object is merged with the value in effect, so that a patch of one entry keeps the others.
 */
export function applyPatch(
  values: Flat,
  patch: Flat,
  { keepsNull, inEffect }: { keepsNull: (key: string) => boolean; inEffect: Flat },
): Flat {
  const patched = new Map([...values, ...patch])
  for (const [key, value] of patch) {
    if (value === null && !keepsNull(key)) patched.delete(key)
    if (isRecord(value)) patched.set(key, validated(key, merge(inEffect.get(key), value)))
  }
  return patched
}

function merge(target: unknown, patch: JsonObject): JsonObject {
  const merged = new Map(Object.entries(isRecord(target) ? target : {}))
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name)
    else merged.set(name, isRecord(value) ? merge(merged.get(name), value) : value)
  }
  return Object.fromEntries(merged)
}

/** The smallest merge patch from one to the other. */
export function patchBetween(before: Flat, after: Flat): Flat {
  const removed = [...before.keys()].filter((key) => !after.has(key))
  const changed = [...after].flatMap(([key, value]): (readonly [string, unknown])[] => {
    const old = before.get(key)
    if (Bun.deepEquals(old, value, true)) return []
    return [[key, isRecord(old) && isRecord(value) ? difference(old, value) : value]]
  })
  return new Map([...removed.map((key) => [key, null] as const), ...changed])
}

function difference(before: JsonObject, after: JsonObject): JsonObject {
  const flat = (value: JsonObject): Flat => new Map(Object.entries(value))
  return Object.fromEntries(patchBetween(flat(before), flat(after)))
}

/** Validates a merge patch, key by key; throws an `AppError` of status 422. */
export function parsePatch(body: unknown): Flat {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  if (hasField(body['service_desk'], 'collection_name')) {
    throw new AppError(
      'removed_field',
      '"collection_name" was removed; name the documents in "service_desk.document_ids".',
      { code: 'collection_name_removed', param: 'service_desk.collection_name' },
    )
  }
  return new Map(
    flattenPatch(body, '').map(([key, value]) => [
      key,
      // An object is validated when it was merged.
      isRecord(value) && settingsByKey.get(key)?.isMerged ? value : parseValue(key, value),
    ]),
  )
}

/** Returns the canonical form of a value; throws an `AppError` of status 422 that names the key. */
export function parseValue(key: string, value: unknown): unknown {
  if (value === null) return null
  const valid = validated(key, value)
  return settingsByKey.get(key)?.reference === 'files' ? parseFileIds(key, valid) : valid
}

function validated(key: string, value: unknown): unknown {
  const fault = settingsByKey.get(key)?.checker.firstError(value) ?? null
  if (fault === null) return value
  const path = fault.path === '' || fault.path.startsWith('[') ? fault.path : `.${fault.path}`
  const param = key + path
  if (fault.unknownField) throw unknownField(param)
  throw refused(param, `"${param}" ${fault.message.replace(/^(The value|"[^"]*") /, '')}`)
}

/** A null section stands for all of its keys. */
function flattenPatch(fields: object, path: string): (readonly [string, unknown])[] {
  return Object.entries(fields).flatMap(([name, value]): (readonly [string, unknown])[] => {
    const key = path + name
    // The name of a field must not be a path itself.
    const isPlain = !name.includes('.')
    if (isPlain && settingsByKey.has(key)) return [[key, value]]
    const keys = isPlain && path === '' ? keysOfSection(name) : []
    if (keys.length === 0) throw unknownField(key)
    if (value === null) return keys.map((each) => [each, null] as const)
    if (isRecord(value)) return flattenPatch(value, `${key}.`)
    throw refused(key, `"${key}" must be an object.`)
  })
}

/** In lower case, without duplicates, in order of first occurrence. */
function parseFileIds(key: string, value: unknown): readonly string[] {
  const ids: readonly unknown[] = Array.isArray(value) ? value : []
  const malformed = ids.findIndex((id) => typeof id !== 'string' || !isUuid(id))
  if (malformed !== -1) throw documentNotFound(key, ids, malformed)
  return [...new Set(ids.map((id) => String(id).toLowerCase()))]
}

export function documentNotFound(key: string, ids: readonly unknown[], index: number): AppError {
  return new AppError('unprocessable', `There is no file with the id "${ids[index]}".`, {
    code: 'document_not_found',
    param: `${key}[${index}]`,
  })
}

/** At any depth, which the body reader limits. */
function hasField(value: unknown, name: string): boolean {
  if (Array.isArray(value)) return value.some((item) => hasField(item, name))
  if (!isRecord(value)) return false
  return Object.hasOwn(value, name) || Object.values(value).some((inner) => hasField(inner, name))
}
