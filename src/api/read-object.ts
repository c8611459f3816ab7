import type { TObject } from '@sinclair/typebox'
import { cachedByKey } from '#lib/cached-by-key.ts'
import type { AppError } from '#lib/errors.ts'
import { isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { expectationOf, type ShallowStatic, shallowSchema } from './request-schema.ts'

/**
 * The error of an invalid field. An empty path stands for the request body itself; `predicate`
 * completes the sentence that begins with the field: `must be a string`.
 */
type InvalidField = (path: string, predicate: string) => AppError

/** The readers of one surface: both surfaces validate alike and differ in their error messages. */
export function createReaders(invalidField: InvalidField) {
  return {
    /**
     * Validates the outermost level of an object at `path` of the request body and returns the object
     * without its null fields. Throws an `invalid_request` that names the first invalid field.
     */
    readObject<T extends TObject>(schema: T, value: unknown, path: string): ShallowStatic<T> {
      if (!isRecord(value)) throw invalidField(path, 'must be an object')
      const checker = checkerOf(schema)
      const present = withoutNulls(value)
      if (checker.check(present)) return present as ShallowStatic<T>
      // One level deep, so the path of the error is the name of a field.
      const field = checker.firstError(present)?.path ?? ''
      const expected = schema.properties[field]
      const predicate =
        present[field] === undefined || expected === undefined
          ? 'is required'
          : `must be ${expectationOf(expected)}`
      throw invalidField(path === '' ? field : `${path}.${field}`, predicate)
    },

    /** Reads the `type` that selects the schema of an object. */
    readType(value: unknown, path: string): string {
      if (!isRecord(value)) throw invalidField(path, 'must be an object')
      const type = value['type'] ?? null
      if (type === null) throw invalidField(`${path}.type`, 'is required')
      if (typeof type !== 'string') throw invalidField(`${path}.type`, 'must be a string')
      return type
    },
  }
}

const checkerOf = cachedByKey((schema: TObject) => compileChecker(shallowSchema(schema)))

const quotedCharsMax = 64

/** A value from the request, quoted and shortened for an error message. */
export function quote(value: string): string {
  return JSON.stringify(
    value.length > quotedCharsMax ? `${value.slice(0, quotedCharsMax)}…` : value,
  )
}
