/**
 * A text in pieces of at most `charsMax`, cut before a space where there is one, which is where
 * tokenizers cut too. Characters of two units stay whole.
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

/** The time that byte-pair merging takes grows with the square of a run, so runs are bounded. */
const runCharsMax = 96

const longRun = new RegExp(
  `(?:[\\p{L}\\p{M}]{${runCharsMax}}|\\s{${runCharsMax}}|[^\\s\\p{L}\\p{N}]{${runCharsMax}})`,
  'gu',
)

/** The text in pieces whose runs of letters, spaces or marks are short; mostly it is one piece. */
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
