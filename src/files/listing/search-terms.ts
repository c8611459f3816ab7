import { foldCase, nameKey } from '#files/names.ts'
import { refused } from '#lib/unprocessable.ts'

/** Further terms are ignored. */
const termsMax = 16

/** The distinct terms of a query, in the form of name keys; throws `query_empty`. */
export function termsOf(query: string): readonly string[] {
  const terms = nameKey(query)
    .split(/\s+/)
    .filter((term) => term !== '')
  if (terms.length > 0) return [...new Set(terms)].slice(0, termsMax)
  throw refused('query', '"query" must not be empty.', 'query_empty')
}

/** A half-open range of UTF-16 units. */
export type TextRange = { readonly start: number; readonly end: number }

/** Where the terms of a query occur in a name, in order and without overlaps. */
export function highlight(name: string, query: string): readonly TextRange[] {
  const { folded, offsets } = foldWithOffsets(name)
  const ranges = termsOf(query)
    .flatMap((term) => occurrences(folded, term))
    .map(({ start, end }) => ({
      start: offsets[start] ?? 0,
      end: offsets[end] ?? name.length,
    }))
  return mergeRanges(ranges.toSorted((one, other) => one.start - other.start))
}

/** The name in the form of name keys, with the original offset of each unit. */
function foldWithOffsets(name: string): { folded: string; offsets: readonly number[] } {
  let folded = ''
  let offset = 0
  const offsets: number[] = []
  for (const character of name) {
    const plain = /\p{Default_Ignorable_Code_Point}/u.test(character) ? '' : foldCase(character)
    for (let unit = 0; unit < plain.length; unit++) offsets.push(offset)
    folded += plain
    offset += character.length
  }
  return { folded, offsets }
}

function occurrences(text: string, term: string): TextRange[] {
  const ranges: TextRange[] = []
  for (let at = text.indexOf(term); at !== -1; at = text.indexOf(term, at + term.length)) {
    ranges.push({ start: at, end: at + term.length })
  }
  return ranges
}

function mergeRanges(ranges: readonly TextRange[]): readonly TextRange[] {
  const merged: TextRange[] = []
  for (const range of ranges) {
    const last = merged.at(-1)
    if (last === undefined || range.start > last.end) merged.push(range)
    else merged[merged.length - 1] = { ...last, end: Math.max(last.end, range.end) }
  }
  return merged
}
