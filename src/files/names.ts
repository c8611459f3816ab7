import { refusedField } from '#lib/unprocessable.ts'

/** File systems take no longer ones. */
const nameBytesMax = 255

/** What no name may have: control characters, separators of lines, and what turns the writing round. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u
const invisible = /\p{Default_Ignorable_Code_Point}/gu

/** A name as it is kept: in Unicode form NFC, without space around it; throws a 422 for `param`. */
export function parseName(given: string, param = 'name'): string {
  const name = given.normalize('NFC').trim()
  const complaint = complaintAbout(name)
  if (complaint === null) return name
  throw refusedField(param, complaint, 'invalid_name')
}

function complaintAbout(name: string): string | null {
  if (!name.isWellFormed() || unprintable.test(name)) return 'must be plain text on one line'
  if (/[/\\]/.test(name)) return 'must not have slashes'
  if (name === '.' || name === '..') return 'must not be "." or ".."'
  if (nameKey(name) === '') return 'must not be empty'
  if (Buffer.byteLength(name) > nameBytesMax) return `must have at most ${nameBytesMax} bytes`
  return null
}

/**
 * Two names that differ in their key may stand in one folder. Left out of it are case, and what
 * cannot be seen; letters of different scripts that look alike stay different, and so do `ß` and
 * `ss`, or a ligature and its letters: each character is folded by itself, to one other at most.
 */
export function nameKey(name: string): string {
  return Array.from(name.normalize('NFC').replace(invisible, ''), foldCase)
    .join('')
    .normalize('NFC')
    .trim()
}

/** Dotless: the only letter whose capital is that of another one, and which is not folded. */
const dotlessI = '\u0131'

/** One character without its case, by the simple folding of Unicode. */
export function foldCase(character: string): string {
  if (character === dotlessI) return character
  const upper = character.toUpperCase()
  if (Array.from(upper).length > 1) return character
  const lower = upper.toLowerCase()
  return Array.from(lower).length > 1 ? character : lower
}

/** What is longer is no ending that says what a file is. */
const endingCharsMax = 16

/** `report.pdf`, 2 → `report (2).pdf`; the name before the mark gives way where it is too long. */
export function numberedName(name: string, number: number): string {
  const dot = name.lastIndexOf('.')
  const end = dot > 0 && name.length - dot <= endingCharsMax ? dot : name.length
  const tail = ` (${number})${name.slice(end)}`
  const stem = Array.from(name.slice(0, end))
  const stemBytesMax = nameBytesMax - Buffer.byteLength(tail)
  while (stem.length > 1 && Buffer.byteLength(stem.join('')) > stemBytesMax) stem.pop()
  return parseName(stem.join('') + tail)
}
