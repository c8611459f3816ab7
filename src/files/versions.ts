/** The version of a record as HTTP knows it. */
export function versionTag(version: number): string {
  return `"${version}"`
}

/**
 * The versions that an `If-Match` header names; null where it is absent or `*`, so that any will do.
 * A weak tag, or one that is none of ours, is no version.
 */
export function readIfMatch(header: string | null | undefined): readonly number[] | null {
  if (header === null || header === undefined || header.trim() === '*') return null
  return header.split(',').flatMap((tag) => {
    const version = /^\s*"(\d{1,9})"\s*$/.exec(tag)?.[1]
    return version === undefined ? [] : [Number(version)]
  })
}
