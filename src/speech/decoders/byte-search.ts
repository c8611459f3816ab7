import type { ByteReader } from './byte-reader.ts'

/** How far one step of a search looks. */
const stepBytes = 4096

/**
 * Drops bytes up to the next place where one of the marks begins, or might begin when more has come.
 * Says how many were dropped and whether a mark was found. Marks are of one length, at least two.
 */
export function dropUntil(
  reader: ByteReader,
  marks: readonly (readonly number[])[],
): { dropped: number; found: boolean } {
  const markBytes = marks[0]?.length ?? 0
  let dropped = 0
  while (reader.available >= markBytes) {
    const window = reader.peek(Math.min(reader.available, stepBytes))
    if (window === null) break
    const at = findMark(window, marks, markBytes)
    if (at !== -1) return { dropped: dropped + reader.drop(at), found: true }
    // The last bytes may be the beginning of a mark.
    dropped += reader.drop(window.length - markBytes + 1)
  }
  return { dropped, found: false }
}

function findMark(
  window: Uint8Array,
  marks: readonly (readonly number[])[],
  markBytes: number,
): number {
  for (let at = 0; at + markBytes <= window.length; at++) {
    if (marks.some((mark) => mark.every((byte, offset) => window[at + offset] === byte))) return at
  }
  return -1
}
