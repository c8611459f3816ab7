/**
 * Lower-case letters and digits without i, l, o and u: 32 signs carry five bits each without bias,
 * and a double click selects the whole id.
 */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
/** 26 signs of five bits: 130 random bits. */
const signsPerId = 26
/** Asking for randomness costs more than an id, so it is taken for this many ids at a time. */
const idsPerBlock = 256

const codes = Buffer.from(alphabet, 'latin1')
/** Signs, all random. */
const block = Buffer.alloc(signsPerId * idsPerBlock)
let used = block.length

/** A new id that nobody can guess: `newId('resp_')` is `resp_` and 26 random signs. */
export function newId(prefix: string): string {
  if (used === block.length) {
    crypto.getRandomValues(block)
    for (let at = 0; at < block.length; at++) block[at] = codes[(block[at] ?? 0) & 31] ?? 0
    used = 0
  }
  used += signsPerId
  return prefix + block.toString('latin1', used - signsPerId, used)
}
