/**
 * What a program with `framed = true` reads from its input: frames of 4 bytes little-endian length
 * of the content, 1 byte type, and the content. It skips types that it does not know.
 *
 *     0  options   JSON: {"language":"en","vocabulary":["..."],"endpointing_ms":600}; once, first
 *     1  audio     samples: mono, 16 bit little-endian
 *     2  finalize  empty: it says finals of all audio until here, then {"type":"finalized"}
 *     3  end       empty: it says the remaining finals, then {"type":"done"}, and ends
 *
 * A program without frames reads bare samples, and the end of its input is the end of the audio.
 */
const frameTypes = { options: 0, audio: 1, finalize: 2, end: 3 } as const

const headerBytes = 5
const nothing = new Uint8Array(0)

export function frame(type: keyof typeof frameTypes, content: Uint8Array = nothing): Uint8Array {
  const bytes = new Uint8Array(headerBytes + content.length)
  new DataView(bytes.buffer).setUint32(0, content.length, true)
  bytes[4] = frameTypes[type]
  bytes.set(content, headerBytes)
  return bytes
}
