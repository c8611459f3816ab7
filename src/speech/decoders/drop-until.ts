import type { ByteReader } from './byte-reader.ts'

/** Bytes searched in one step. */
const stepBytes = 4096

/**
 * Drops bytes up to the next mark, or to a possible beginning of one. Returns how many were dropped
 * and whether a mark was found. All marks have the same length of at least two.
 */
export function dropUntil(
  reader: ByteReader,
  marks: readonly Buffer[],
): { dropped: number; found: boolean } {
  const markBytes = marks[0]?.length ?? 0
  let dropped = 0
  while (reader.available >= markBytes) {
    const window = reader.peek(Math.min(reader.available, stepBytes))
    if (window === null) break
    const bytes = Buffer.from(window.buffer, window.byteOffset, window.length)
    const places = marks.map((mark) => bytes.indexOf(mark)).filter((at) => at !== -1)
    if (places.length > 0)
      return { dropped: dropped + reader.drop(Math.min(...places)), found: true }
    // The last bytes may be the start of a mark.
    dropped += reader.drop(window.length - markBytes + 1)
  }
  return { dropped, found: false }
}
