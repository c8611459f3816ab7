import type { Static, TObject } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'

/**
 * A function that returns a value in the shape of one of the schemas of `schema.ts`, without its
 * null fields, or throws an `invalid_request` that names the field at fault. `path` is where the
 * value stands in the body, as the protocol writes it: `messages.2.content.0`, and an empty text for
 * the body itself.
 */
export function createReader<T extends TObject>(
  schema: T,
): (value: unknown, path: string) => Static<T> {
  const checker = compileChecker(schema)
  return (value, path) => {
    if (!isRecord(value)) throw badField(path, 'must be an object')
    const given = withoutNulls(value)
    if (checker.check(given)) return given
    // One level deep, so that the path of a fault is the name of a field.
    const field = checker.firstError(given)?.path ?? ''
    const expected = schema.properties[field]?.description ?? 'of another shape'
    const predicate = given[field] === undefined ? 'is required' : `must be ${expected}`
    throw badField(joinPath(path, field), predicate)
  }
}

/** The `type` that tells which shape an object has. */
export function readType(value: unknown, path: string): string {
  if (!isRecord(value)) throw badField(path, 'must be an object')
  const type = value['type'] ?? null
  if (type === null) throw badField(`${path}.type`, 'is required')
  if (typeof type !== 'string') throw badField(`${path}.type`, 'must be a text')
  return type
}

/** `predicate` says what is wrong with the field: `must not be empty`. */
export function badField(path: string, predicate: string): AppError {
  if (path === '') return new AppError('invalid_request', `The request body ${predicate}.`)
  return new AppError('invalid_request', `${path}: ${predicate}`, { param: path })
}

const quotedCharsMax = 64

/** A word of the caller's, fit for a sentence. */
export function quote(word: string): string {
  return JSON.stringify(word.length > quotedCharsMax ? `${word.slice(0, quotedCharsMax)}…` : word)
}

function joinPath(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`
}

function withoutNulls(record: JsonObject): JsonObject {
  if (!Object.values(record).includes(null)) return record
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null))
}
