/** A variable-length integer; null if incomplete. */
export function readVint(bytes: Uint8Array): { value: number; bytes: number } | null {
  const length = vintBytes(bytes[0] ?? 0)
  if (length > 8 || length > bytes.length) return null
  return { value: readMarked(bytes.subarray(0, length)), bytes: length }
}

/** The length of a variable-length integer by its first byte: 1 to 8, or 9 if invalid. */
export function vintBytes(first: number): number {
  return Math.clz32(first) - 23
}

/** Without the length marker; inexact above 2^53, which no valid stream reaches. */
export function readMarked(bytes: Uint8Array): number {
  const mark = 0x80 >> (bytes.length - 1)
  return bytes.reduce((value, byte, at) => value * 256 + (at === 0 ? byte - mark : byte), 0)
}

export function readUnsigned(bytes: Uint8Array): number {
  return bytes.reduce((value, byte) => value * 256 + byte, 0)
}
