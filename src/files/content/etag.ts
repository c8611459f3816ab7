/** A content never changes, so its hash is the strongest tag that there is. */
export function contentETag({ sha256 }: { sha256: string }): string {
  return `"${sha256}"`
}

/** Whether a header of tags (RFC 9110, 13.1) names this one. */
export function matches(header: string, etag: string): boolean {
  return header
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .some((tag) => tag === '*' || tag === etag)
}
