/**
 * Lower-case letters and digits without i, l, o and u: 32 characters carry five unbiased bits each,
 * and a double click selects the whole id.
 */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
/** 26 characters of five bits: 130 random bits. */
const charsPerId = 26
/** Random bytes are drawn for this many ids at a time: the call costs more than an id. */
const idsPerBlock = 256

const codes = Buffer.from(alphabet, 'latin1')
/** Random characters. */
const block = Buffer.alloc(charsPerId * idsPerBlock)
let used = block.length

/** A new unguessable id: `newId('resp_')` is `resp_` and 26 random characters. */
export function newId(prefix: string): string {
  if (used === block.length) {
    crypto.getRandomValues(block)
    for (let at = 0; at < block.length; at++) block[at] = codes[(block[at] ?? 0) & 31] ?? 0
    used = 0
  }
  used += charsPerId
  return prefix + block.toString('latin1', used - charsPerId, used)
}
