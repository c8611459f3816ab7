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
const random = Buffer.alloc(charsPerId * idsPerBlock)
/** Random characters; a slice of a text costs less than a text of its own. */
let block = ''
let used = random.length

/** A new unguessable id: `newId('resp_')` is `resp_` and 26 random characters. */
export function newId(prefix: string): string {
  if (used === random.length) {
    crypto.getRandomValues(random)
    for (let at = 0; at < random.length; at++) random[at] = codes[(random[at] ?? 0) & 31] ?? 0
    block = random.toString('latin1')
    used = 0
  }
  used += charsPerId
  return prefix + block.slice(used - charsPerId, used)
}
