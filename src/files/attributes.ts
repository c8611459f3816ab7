import { isRecord } from '#lib/json.ts'
import { refusedField } from '#lib/unprocessable.ts'
import type { Attributes } from './files.ts'

const attributesMax = 16
const valueCharsMax = 512
const keyForm = /^[A-Za-z0-9_.-]{1,64}$/

/** Throws a 422. */
export function parseAttributes(value: unknown, param = 'attributes'): Attributes {
  return mergeAttributes({}, value, param)
}

/**
 * Applies a merge patch: null removes an attribute, or all of them. Throws a 422.
 */
export function mergeAttributes(
  current: Attributes,
  change: unknown,
  param = 'attributes',
): Attributes {
  if (change === null) return {}
  if (!isRecord(change)) throw refusedField(param, 'must be an object')
  const merged = new Map(Object.entries(current))
  for (const [key, value] of Object.entries(change)) {
    if (!keyForm.test(key)) {
      throw refusedField(param, 'must have keys of 1 to 64 letters, digits, "_", "." or "-"')
    }
    if (value === null) merged.delete(key)
    else merged.set(key, parseValue(value, `${param}.${key}`))
  }
  if (merged.size > attributesMax)
    throw refusedField(param, `must have at most ${attributesMax} keys`)
  return Object.fromEntries(merged)
}

function parseValue(value: unknown, param: string): string | number | boolean {
  if (typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (typeof value !== 'string')
    throw refusedField(param, 'must be a string, a number or a boolean')
  if (value.length > valueCharsMax) {
    throw refusedField(param, `must have at most ${valueCharsMax} characters`)
  }
  if (!value.isWellFormed() || value.includes('\0')) throw refusedField(param, 'must be plain text')
  return value
}
