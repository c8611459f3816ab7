/**
 * Splits a text into pieces of at most `charsMax`, before a space if there is one: tokenizers split
 * there as well. Surrogate pairs stay whole.
 */
export function cutText(text: string, charsMax: number): string[] {
  const pieces: string[] = []
  let start = 0
  while (text.length - start > charsMax) {
    const space = text.slice(start, start + charsMax).lastIndexOf(' ')
    const end = space > 0 ? start + space : wholeCharEnd(text, start + charsMax)
    pieces.push(text.slice(start, end))
    start = end
  }
  pieces.push(text.slice(start))
  return pieces
}

/** The time of byte-pair merging grows with the square of the run length, so runs are limited. */
const runCharsMax = 64

const longRun = new RegExp(
  `(?:[\\p{L}\\p{M}]{${runCharsMax}}|\\s{${runCharsMax}}|[^\\s\\p{L}\\p{N}]{${runCharsMax}})`,
  'gu',
)

/** Splits a text so that runs of letters, spaces or marks are short; usually one piece. */
export function cutRuns(text: string): string[] {
  const pieces: string[] = []
  let start = 0
  for (const run of text.matchAll(longRun)) {
    const end = run.index + run[0].length
    pieces.push(text.slice(start, end))
    start = end
  }
  pieces.push(text.slice(start))
  return pieces
}

function wholeCharEnd(text: string, end: number): number {
  const code = text.charCodeAt(end)
  return code >= 0xdc00 && code <= 0xdfff ? end - 1 : end
}
