/** The first `linesMax` lines of a stream, each truncated to `charsMax`. */
export async function* firstLines(
  stream: AsyncIterable<Uint8Array>,
  { charsMax, linesMax }: { charsMax: number; linesMax: number },
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder()
  let rest = ''
  let lines = 0
  for await (const bytes of stream) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = (parts.pop() ?? '').slice(0, charsMax)
    for (const part of parts.filter((line) => line.trim() !== '')) {
      // Further lines are read and dropped, so that the process does not block.
      if (lines++ < linesMax) yield part.slice(0, charsMax)
    }
  }
  if (rest.trim() !== '' && lines < linesMax) yield rest
}
