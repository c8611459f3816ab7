/** A line of a JSONL input. */
export type InputLine = {
  /** From 1. */
  readonly line: number
  readonly startByte: number
  /** Without the line break; null: it exceeds the limit. */
  readonly content: Uint8Array | null
}

const lineFeed = 10
const byteOrderMark = [0xef, 0xbb, 0xbf] as const

/** The lines of a stream that are not blank. Of the stream, one line and one chunk are in memory. */
export async function* readInputLines(
  source: AsyncIterable<Uint8Array>,
  lineBytesMax: number,
): AsyncGenerator<InputLine, void, void> {
  let line = 1
  let startByte = 0
  let position = 0
  let parts: Uint8Array[] = []
  let partsBytes = 0
  const keep = (part: Uint8Array) => {
    partsBytes += part.length
    if (partsBytes > lineBytesMax) parts = []
    else if (part.length > 0) parts.push(part)
  }
  const take = (): InputLine | null => {
    const isTooLong = partsBytes > lineBytesMax
    const content = Buffer.concat(parts)
    const skipped = line === 1 && byteOrderMark.every((byte, at) => content[at] === byte) ? 3 : 0
    const taken = {
      line,
      startByte: startByte + skipped,
      content: isTooLong ? null : content.subarray(skipped),
    }
    parts = []
    partsBytes = 0
    return taken.content !== null && isBlank(taken.content) ? null : taken
  }
  for await (const chunk of source) {
    let from = 0
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, from)) {
      keep(chunk.subarray(from, end))
      const taken = take()
      if (taken !== null) yield taken
      from = end + 1
      line++
      startByte = position + from
    }
    // The reader may reuse the chunk.
    keep(chunk.slice(from))
    position += chunk.length
  }
  const last = take()
  if (last !== null) yield last
}

function isBlank(content: Uint8Array): boolean {
  return content.every((byte) => byte === 32 || (byte >= 9 && byte <= 13))
}
