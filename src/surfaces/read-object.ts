import type { Static, TObject } from '@sinclair/typebox'
import type { AppError } from '#lib/errors.ts'
import { isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'

/** A fault of a field, in the words of a surface; an empty path stands for the body itself. */
type BadField = (path: string, predicate: string) => AppError

/** How a surface reads the objects of a body: the same rules, told in its own words. */
export function readObjectsWith(badField: BadField) {
  return {
    /**
     * A function that returns a value in the shape of one of the schemas of `schema.ts`, without its
     * null fields, or throws an `invalid_request` that names the field at fault. `path` is where the
     * value stands in the body.
     */
    createReader<T extends TObject>(schema: T): (value: unknown, path: string) => Static<T> {
      const checker = compileChecker(schema)
      return (value, path) => {
        if (!isRecord(value)) throw badField(path, 'must be an object')
        const given = withoutNulls(value)
        if (checker.check(given)) return given
        // One level deep, so that the path of a fault is the name of a field.
        const field = checker.firstError(given)?.path ?? ''
        const expected = schema.properties[field]?.description ?? 'of another shape'
        const predicate = given[field] === undefined ? 'is required' : `must be ${expected}`
        throw badField(path === '' ? field : `${path}.${field}`, predicate)
      }
    },

    /** The `type` that tells which shape an object has. */
    readType(value: unknown, path: string): string {
      if (!isRecord(value)) throw badField(path, 'must be an object')
      const type = value['type'] ?? null
      if (type === null) throw badField(`${path}.type`, 'is required')
      if (typeof type !== 'string') throw badField(`${path}.type`, 'must be a text')
      return type
    },
  }
}

const quotedCharsMax = 64

/** A word of the caller's, fit for a sentence. */
export function quote(word: string): string {
  return JSON.stringify(word.length > quotedCharsMax ? `${word.slice(0, quotedCharsMax)}…` : word)
}
