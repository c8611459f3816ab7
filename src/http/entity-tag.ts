/** Entity tags (RFC 9110, 8.8.3) by their names: what stands between the quotes. */

export function entityTag(name: string): string {
  return `"${name}"`
}

/** Whether a client that sends this `If-None-Match` has what has this tag already. */
export function isKnown(ifNoneMatch: string | null, name: string): boolean {
  if (ifNoneMatch === null) return false
  const known = split(ifNoneMatch).map((tag) => tag.replace(/^W\//, ''))
  return known.includes('*') || known.includes(entityTag(name))
}

/** Whether what has a tag is what the sender of this `If-Match` wants to change. */
export type IsExpected = (name: string) => boolean

/** Without the header, or with `*`, anything is. */
export function readIfMatch(ifMatch: string | null): IsExpected {
  if (ifMatch === null || ifMatch.trim() === '*') return () => true
  const expected = new Set(split(ifMatch))
  return (name) => expected.has(entityTag(name))
}

function split(header: string): string[] {
  return header.split(',').map((tag) => tag.trim())
}
