/** Entity tags (RFC 9110, 8.8.3) by their names: what stands between the quotes. */

export function entityTag(name: string): string {
  return `"${name}"`
}

/** Whether a client that sends this `If-None-Match` has what has this tag already. */
export function isKnown(ifNoneMatch: string | null, name: string): boolean {
  if (ifNoneMatch === null) return false
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes('*') || tags.includes(entityTag(name))
}

/** Whether what has a tag is what the sender of an `If-Match` wants to change. */
export type IsExpected = (name: string) => boolean

/**
 * Without the header, or with `*`, anything is expected. A weak tag names nothing that could be
 * changed. `relevantPart` is what counts of a name that tells more.
 */
export function readIfMatch(
  ifMatch: string | null,
  relevantPart: (name: string) => string = (name) => name,
): IsExpected {
  if (ifMatch === null || ifMatch.trim() === '*') return () => true
  const names = ifMatch.split(',').flatMap((tag) => /^"(.*)"$/.exec(tag.trim())?.[1] ?? [])
  const expected = new Set(names.map(relevantPart))
  return (name) => expected.has(name)
}
