/** The lines that a program writes, each cut to `charsMax`, and so many of them. */
export async function* readLines(
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
      // The rest is read all the same, so that the program does not stand still.
      if (lines++ < linesMax) yield part.slice(0, charsMax)
    }
  }
  if (rest.trim() !== '' && lines < linesMax) yield rest
}
