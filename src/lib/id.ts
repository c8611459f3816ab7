/**
 * Lower-case letters and digits without i, l, o and u: 32 signs carry five bits each without bias,
 * and a double click selects the whole id.
 */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
/** 26 signs of five bits: 130 random bits. */
const signsPerId = 26
/** Asking for randomness costs more than an id, so it is taken for this many ids at a time. */
const idsPerBlock = 256

const block = new Uint8Array(signsPerId * idsPerBlock)
let used = block.length

/** A new id that nobody can guess: `newId('resp_')` is `resp_` and 26 random signs. */
export function newId(prefix: string): string {
  if (used === block.length) {
    crypto.getRandomValues(block)
    used = 0
  }
  let id = prefix
  for (const end = used + signsPerId; used < end; used++) {
    id += alphabet.charAt((block[used] ?? 0) & 31)
  }
  return id
}
