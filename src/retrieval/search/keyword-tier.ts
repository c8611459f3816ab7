/**
 * How many of the words a passage must have: all, all but one, any. Ranking is what searching by words
 * costs, and ordinary words are in very many passages, but few have all of them.
 */
export type WordsTier = 'all' | 'almost' | 'any'

/** Each of the words may be the one that is missing, and all the others are looked up each time. */
export const almostAllWordsMax = 8

/** From few passages to many: what the first has too few of is looked for in the second. */
export function wordsTiers(words: string): readonly WordsTier[] {
  const count = words.split(' ').length
  if (count === 1) return ['any']
  return [count > 2 && count <= almostAllWordsMax ? 'almost' : 'all', 'any']
}
