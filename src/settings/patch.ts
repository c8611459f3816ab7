import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import { refused, unknownField } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Flat } from './flat.ts'
import { keysOfSection, settingsByKey } from './schema.ts'

/** The key whose values are ids of files. */
export const documentsKey = 'service_desk.document_ids'

/**
 * The body of a change, a merge patch: what each key is to be, or null for what is to be as if
 * nobody had set it. Throws an `AppError` of status 422.
 */
export function readPatch(body: unknown): Flat {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  if (hasField(body['service_desk'], 'collection_name')) {
    throw new AppError(
      'removed_field',
      '"collection_name" was removed; name the documents in "service_desk.document_ids".',
      { code: 'collection_name_removed', param: 'service_desk.collection_name' },
    )
  }
  return new Map(readFields(body, '').map(([key, value]) => [key, readValue(key, value)]))
}

/** A value as it is kept; throws an `AppError` of status 422 that names the key. */
export function readValue(key: string, value: unknown): unknown {
  if (value === null) return null
  const fault = settingsByKey.get(key)?.checker.firstError(value) ?? null
  if (fault === null) return key === documentsKey ? readIds(value) : value
  const param = key + fault.path
  throw refused(param, `"${param}" ${fault.message.replace(/^(The value|"[^"]*") /, '')}`)
}

/** The keys of a patch; a section that is null stands for all of its keys. */
function readFields(fields: object, path: string): (readonly [string, unknown])[] {
  return Object.entries(fields).flatMap(([name, value]): (readonly [string, unknown])[] => {
    const key = path + name
    // A name may not itself be a path.
    const isPlain = !name.includes('.')
    if (isPlain && settingsByKey.has(key)) return [[key, value]]
    const inner = isPlain && path === '' ? keysOfSection(name) : []
    if (inner.length === 0) throw unknownField(key)
    if (value === null) return inner.map((each) => [each, null] as const)
    if (isRecord(value)) return readFields(value, `${key}.`)
    throw refused(key, `"${key}" must be an object.`)
  })
}

/** Each once, in the order in which they were first named. */
function readIds(ids: unknown): readonly string[] {
  const read = Array.isArray(ids) ? ids.map((id, at) => readId(String(id), at)) : []
  return [...new Set(read)]
}

function readId(id: string, at: number): string {
  if (isUuid(id)) return id.toLowerCase()
  throw documentNotFound(id, at)
}

export function documentNotFound(id: string, at: number): AppError {
  return new AppError('unprocessable', `There is no file with the id "${id}".`, {
    code: 'document_not_found',
    param: `${documentsKey}[${at}]`,
  })
}

/** At any depth, which the reader of the body has bounded. */
function hasField(value: unknown, name: string): boolean {
  if (Array.isArray(value)) return value.some((item) => hasField(item, name))
  if (!isRecord(value)) return false
  return Object.hasOwn(value, name) || Object.values(value).some((inner) => hasField(inner, name))
}
