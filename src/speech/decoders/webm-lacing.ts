import { readVint } from './ebml-numbers.ts'

/** How the flags of a block say that it contains several packets (RFC 9559, 10.3). */
const laceMask = 0x06
const xiphLace = 0x02
const fixedLace = 0x04

/** The packets of a block; null if its lacing is corrupt. */
export function splitLacedBlock(flags: number, content: Uint8Array): readonly Uint8Array[] | null {
  const lace = flags & laceMask
  if (lace === 0) return [content]
  const [first] = content
  if (first === undefined) return null
  // All packets but the last have a stated size.
  const count = first
  const laced = content.subarray(1)
  if (lace === fixedLace) return cutEqually(laced, count + 1)
  const sizes = lace === xiphLace ? readXiphSizes(laced, count) : readEbmlSizes(laced, count)
  return sizes === null ? null : cutAt(laced.subarray(sizes.bytes), sizes.values)
}

type Sizes = { readonly values: readonly number[]; readonly bytes: number }

function cutEqually(laced: Uint8Array, count: number): readonly Uint8Array[] | null {
  const size = laced.length / count
  return Number.isInteger(size) ? cutAt(laced, Array(count - 1).fill(size)) : null
}

function cutAt(packets: Uint8Array, sizes: readonly number[]): readonly Uint8Array[] | null {
  const parts: Uint8Array[] = []
  let at = 0
  for (const size of sizes) {
    if (size < 0 || at + size > packets.length) return null
    parts.push(packets.subarray(at, at + size))
    at += size
  }
  return [...parts, packets.subarray(at)]
}

/** Each size is a sum of bytes, up to the first below 255. */
function readXiphSizes(laced: Uint8Array, count: number): Sizes | null {
  const values: number[] = []
  let size = 0
  let bytes = 0
  while (values.length < count) {
    const byte = laced[bytes]
    if (byte === undefined) return null
    bytes += 1
    size += byte
    if (byte === 255) continue
    values.push(size)
    size = 0
  }
  return { values, bytes }
}

/** The first size, then differences, which are stored with half of their range added. */
function readEbmlSizes(laced: Uint8Array, count: number): Sizes | null {
  const values: number[] = []
  let bytes = 0
  while (values.length < count) {
    const number = readVint(laced.subarray(bytes))
    if (number === null) return null
    const before = values.at(-1)
    const middle = 2 ** (7 * number.bytes - 1) - 1
    values.push(before === undefined ? number.value : before + number.value - middle)
    bytes += number.bytes
  }
  return { values, bytes }
}
