const plain = /^[A-Za-z0-9_-]+$/

/**
 * An id in letters, digits, underscores and dashes, which every protocol takes. One that has other
 * signs is spelled in base64url behind the mark; two different ids never become the same one.
 */
export function spellPlainly(id: string, mark: string): string {
  if (plain.test(id) && !id.startsWith(mark)) return id
  return mark + Buffer.from(id).toString('base64url')
}

/** The id that was spelled behind this mark, or the id itself where it is none of ours. */
export function readPlainly(spelled: string, mark: string): string {
  if (!spelled.startsWith(mark)) return spelled
  const id = Buffer.from(spelled.slice(mark.length), 'base64url').toString()
  // What we did not write is somebody else's id, which happens to begin alike.
  return spellPlainly(id, mark) === spelled ? id : spelled
}
