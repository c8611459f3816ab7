import { AppError } from './errors.ts'

/** Entity tags (RFC 9110, 8.8.3). A name is the text between the quotes. */

export function entityTag(name: string): string {
  return `"${name}"`
}

/** Whether an `If-None-Match` header contains this tag. */
export function isKnown(ifNoneMatch: string | null, name: string): boolean {
  if (ifNoneMatch === null) return false
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes('*') || tags.includes(entityTag(name))
}

/** Whether a tag satisfies an `If-Match` header. */
export type IsExpected = (name: string) => boolean

/**
 * Without the header, or with `*`, every tag is expected. Weak tags never match. `relevantPart`
 * extracts the compared part of a name.
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

/** Throws `precondition_failed` with the current tag. */
export function requireExpected(isExpected: IsExpected, tag: string, message: string): void {
  if (!isExpected(tag)) throw new AppError('precondition_failed', message, { etag: tag })
}
