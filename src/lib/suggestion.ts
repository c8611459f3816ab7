/** Longer differences are not typing errors. */
const editsMax = 3

/** The known name that is most like another one, as `; did you mean X?`, or nothing. */
export function suggestionFor(name: string, known: Iterable<string>): string {
  let nearest = { edits: Math.min(editsMax, Math.ceil(name.length / 3)) + 1, name: '' }
  for (const candidate of known) {
    const edits = countEdits(name.toLowerCase(), candidate.toLowerCase())
    if (edits < nearest.edits) nearest = { edits, name: candidate }
  }
  return nearest.name === '' ? '' : `; did you mean ${nearest.name}?`
}

/** Insertions, deletions and substitutions of characters (Levenshtein). */
function countEdits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1]
    for (let to1 = 1; to1 <= to.length; to1++) {
      const substituted = (row[to1 - 1] ?? 0) + (to[to1 - 1] === letter ? 0 : 1)
      next.push(Math.min(substituted, (row[to1] ?? 0) + 1, (next[to1 - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
