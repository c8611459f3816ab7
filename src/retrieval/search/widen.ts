import type { SearchResult } from './search.ts'

/** A stored text near a found one, in the same file. */
export type Neighbour = Pick<SearchResult, 'text'> & Omit<SearchResult['chunk'], 'id'>

export type FoundPassage = SearchResult & {
  /** In the order of the file, without the found text itself. */
  readonly neighbours: readonly Neighbour[]
}

/**
 * Returns each found text with those of its neighbours that no better result contains, as one passage.
 * A text that a better result contains is no result of its own.
 */
export function widenPassages<T extends FoundPassage>(passages: readonly T[]): readonly T[] {
  /** By file in a collection, since indexes of several collections may split it differently. */
  const takenByMember = new Map<string, Set<number>>()
  return passages.flatMap((passage) => {
    const member = `${passage.collectionId} ${passage.fileId}`
    const taken = takenByMember.get(member) ?? new Set()
    takenByMember.set(member, taken)
    if (taken.has(passage.chunk.index)) return []
    const parts = adjacentParts(passage, taken)
    for (const { index } of parts) taken.add(index)
    return [{ ...passage, ...joinParts(passage, parts) }]
  })
}

/** The found text and its free neighbours without a gap between them. */
function adjacentParts(
  { text, chunk, neighbours }: FoundPassage,
  taken: ReadonlySet<number>,
): readonly Neighbour[] {
  const free = new Map(
    neighbours.filter(({ index }) => !taken.has(index)).map((part) => [part.index, part]),
  )
  const parts: Neighbour[] = [{ ...chunk, text }]
  for (let at = chunk.index - 1, part = free.get(at); part; part = free.get(--at)) {
    parts.unshift(part)
  }
  for (let at = chunk.index + 1, part = free.get(at); part; part = free.get(++at)) parts.push(part)
  return parts
}

/** Neighbours overlap, or have only white space between them. */
function joinParts({ chunk }: FoundPassage, parts: readonly Neighbour[]) {
  const first = parts[0] ?? { ...chunk, text: '' }
  let text = first.text
  let end = first.end
  for (const part of parts.slice(1)) {
    text += part.start > end ? `\n\n${part.text}` : part.text.slice(end - part.start)
    end = Math.max(end, part.end)
  }
  return { text, chunk: { ...chunk, page: first.page, start: first.start, end } }
}
