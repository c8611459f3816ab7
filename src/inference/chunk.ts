/** A part of a read. A view of it would cost as much as all that is done with it, so it has none. */
export type Chunk = { readonly bytes: Buffer; readonly start: number; readonly end: number }

/** All of these bytes; the memory is the same. */
export function chunkOf({ buffer, byteOffset, byteLength }: Uint8Array): Chunk {
  return { bytes: Buffer.from(buffer, byteOffset, byteLength), start: 0, end: byteLength }
}

/** For whoever needs an array after all; the memory is the same. */
export function viewOf({ bytes, start, end }: Chunk): Uint8Array {
  return bytes.subarray(start, end)
}
