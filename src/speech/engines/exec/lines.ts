/**
 * Calls back with every line of a stream that is not blank, without its end. Of a line longer than
 * `charsMax` the beginning is told at once (`isWhole` is false) and the rest is skipped, so no more
 * than that is ever kept. Resolves at the end of the stream, whose last line needs no line end.
 */
export async function readLines(
  stream: AsyncIterable<Uint8Array>,
  charsMax: number,
  tell: (line: string, isWhole: boolean) => void,
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  let isSkipping = false
  const close = (line: string) => {
    if (isSkipping) isSkipping = false
    else if (line.length > charsMax) tell(line.slice(0, charsMax), false)
    else if (line.trim() !== '') tell(line.trim(), true)
  }
  for await (const piece of stream) {
    const parts = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) close(part)
    if (rest.length <= charsMax) continue
    if (!isSkipping) tell(rest.slice(0, charsMax), false)
    isSkipping = true
    rest = ''
  }
  close(rest)
}
