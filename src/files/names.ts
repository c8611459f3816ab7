import { refusedField } from '#lib/unprocessable.ts'

/** The limit of common file systems. */
const nameBytesMax = 255

/** Control characters, line separators and bidirectional controls. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u
const invisible = /\p{Default_Ignorable_Code_Point}/gu

/** Returns the name in Unicode form NFC, trimmed; throws a 422 for `param`. */
export function parseName(text: string, param = 'name'): string {
  const name = text.normalize('NFC').trim()
  const problem = problemOf(name)
  if (problem === null) return name
  throw refusedField(param, problem, 'invalid_name')
}

function problemOf(name: string): string | null {
  if (!name.isWellFormed() || unprintable.test(name)) return 'must be plain text on one line'
  if (/[/\\]/.test(name)) return 'must not have slashes'
  if (name === '.' || name === '..') return 'must not be "." or ".."'
  if (nameKey(name) === '') return 'must not be empty'
  if (Buffer.byteLength(name) > nameBytesMax) return `must have at most ${nameBytesMax} bytes`
  return null
}

/**
 * Names with different keys may be in one folder. The key ignores case and invisible characters.
 * Letters of different scripts that look alike stay different, and so do `ß` and `ss`, or a ligature
 * and its letters: each character is folded to at most one other.
 */
export function nameKey(name: string): string {
  return Array.from(name.normalize('NFC').replace(invisible, ''), foldCase)
    .join('')
    .normalize('NFC')
    .trim()
}

const duplicateMark = '\u0001'

/** The key of another file of the same name: names have no control characters. */
export function duplicateKey(name: string, id: string): string {
  return `${nameKey(name)}${duplicateMark}${id}`
}

/** Its capital is the same as that of `i`, so it must not be folded. */
const dotlessI = '\u0131'

/** Simple case folding of Unicode. */
export function foldCase(character: string): string {
  if (character === dotlessI) return character
  const upper = character.toUpperCase()
  if (Array.from(upper).length > 1) return character
  const lower = upper.toLowerCase()
  return Array.from(lower).length > 1 ? character : lower
}

/** A longer suffix is not a file extension. */
const extensionCharsMax = 16

/** `report.pdf`, 2 → `report (2).pdf`; the stem is shortened if necessary. */
export function numberedName(name: string, number: number): string {
  const dot = name.lastIndexOf('.')
  const end = dot > 0 && name.length - dot <= extensionCharsMax ? dot : name.length
  const suffix = ` (${number})${name.slice(end)}`
  const stem = Array.from(name.slice(0, end))
  const stemBytesMax = nameBytesMax - Buffer.byteLength(suffix)
  while (stem.length > 1 && Buffer.byteLength(stem.join('')) > stemBytesMax) stem.pop()
  return parseName(stem.join('') + suffix)
}
