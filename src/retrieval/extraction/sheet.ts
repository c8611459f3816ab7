/** Of all sheets of a file. */
export const rowsMax = 200_000
/** About half of a passage of the default length. */
const charsPerHead = 1_500
const headCharsMax = 500

/** Repeats the first row, so that each passage of a long sheet has the names of its columns. */
export function withRepeatedHead(rows: readonly string[]): readonly string[] {
  const [head = '', ...rest] = rows
  // Numbers are no names, and a long first row would multiply the text.
  if (/\d{3}/.test(head) || head.length > headCharsMax) return rows
  let chars = 0
  return [
    head,
    ...rest.flatMap((row) => {
      chars += row.length
      if (chars < charsPerHead) return [row]
      chars = row.length
      return [head, row]
    }),
  ]
}
