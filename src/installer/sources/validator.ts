/** An entity tag that stands for the very bytes; null: there is none. */
export function strongEtag(headers: Headers): string | null {
  const etag = headers.get('etag')?.trim() ?? ''
  return /^"[\x21\x23-\x7e]{1,512}"$/.test(etag) ? etag : null
}

/**
 * What may stand in `If-Range`, so that parts of two versions are never put together: a strong entity
 * tag, else the date of the last change.
 */
export function validatorOf(headers: Headers): string | null {
  const changed = headers.get('last-modified')
  const isDate = changed !== null && !Number.isNaN(Date.parse(changed))
  return strongEtag(headers) ?? (isDate ? changed : null)
}

/** Whether an answer is certainly of another version; what says nothing is of the same. */
export function isOtherVersion(headers: Headers, validator: string | null): boolean {
  if (validator === null) return false
  const now = validator.startsWith('"') ? strongEtag(headers) : headers.get('last-modified')
  return now !== null && now !== validator
}
