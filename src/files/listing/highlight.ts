import { foldCase } from '#files/names.ts'
import { wordsOf } from './listing.ts'

/** From `start` to before `end`, in UTF-16 units as JavaScript counts them. */
export type Stretch = { readonly start: number; readonly end: number }

/** Where the words of a query stand in a name, in order and apart from each other. */
export function highlight(name: string, query: string): readonly Stretch[] {
  const { folded, starts } = foldWithPlaces(name)
  const found = wordsOf(query).flatMap((word) => occurrences(folded, word))
  const stretches = found.map(({ start, end }) => ({
    start: starts[start] ?? 0,
    end: starts[end] ?? name.length,
  }))
  return joinTouching(stretches.toSorted((left, right) => left.start - right.start))
}

/** The name without case, and for each of its units where it comes from. */
function foldWithPlaces(name: string): { folded: string; starts: readonly number[] } {
  let folded = ''
  let at = 0
  const starts: number[] = []
  for (const character of name) {
    const plain = /\p{Default_Ignorable_Code_Point}/u.test(character) ? '' : foldCase(character)
    for (let unit = 0; unit < plain.length; unit++) starts.push(at)
    folded += plain
    at += character.length
  }
  return { folded, starts }
}

function occurrences(text: string, word: string): Stretch[] {
  const found: Stretch[] = []
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length)) {
    found.push({ start: at, end: at + word.length })
  }
  return found
}

function joinTouching(stretches: readonly Stretch[]): readonly Stretch[] {
  const joined: Stretch[] = []
  for (const stretch of stretches) {
    const last = joined.at(-1)
    if (last === undefined || stretch.start > last.end) joined.push(stretch)
    else joined[joined.length - 1] = { ...last, end: Math.max(last.end, stretch.end) }
  }
  return joined
}
