import type { ComponentChildren } from 'preact'

/** Letters that a word may lose at its end: "gates" also marks "gate". */
const endingChars = 2
const stemCharsMin = 4

/** The words of a query, as a pattern that finds them and their inflections; null: nothing to find. */
function patternOf(query: string): RegExp | null {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []
  const long = words.filter((word) => word.length >= stemCharsMin)
  // Short words are articles and the like, unless there are no others.
  const stems = (long.length > 0 ? long : words).map((word) =>
    word.length - endingChars >= stemCharsMin ? `${word.slice(0, -endingChars)}\\p{L}*` : word,
  )
  if (stems.length === 0) return null
  return new RegExp(`(?<![\\p{L}\\p{N}])((?:${stems.join('|')}))(?![\\p{L}\\p{N}])`, 'giu')
}

/** A passage with the words of the query marked. */
export function Highlighted({ passage, query }: { passage: string; query: string }) {
  const pattern = patternOf(query)
  if (pattern === null) return <>{passage}</>
  const pieces: ComponentChildren[] = passage
    .split(pattern)
    .map((piece, at) => (at % 2 === 1 ? <mark key={at}>{piece}</mark> : piece))
  return <>{pieces}</>
}
