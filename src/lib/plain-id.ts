const plain = /^[A-Za-z0-9_-]+$/

/**
 * Encodes an id in letters, digits, underscores and dashes, which every protocol accepts. Other ids
 * become the prefix and base64url. The encoding is injective.
 */
export function encodePlainId(id: string, prefix: string): string {
  if (plain.test(id) && !id.startsWith(prefix)) return id
  return prefix + Buffer.from(id).toString('base64url')
}

/** Reverses `encodePlainId`; returns ids of other origins unchanged. */
export function decodePlainId(encoded: string, prefix: string): string {
  if (!encoded.startsWith(prefix)) return encoded
  const id = Buffer.from(encoded.slice(prefix.length), 'base64url').toString()
  // An id of another origin may happen to start with the prefix.
  return encodePlainId(id, prefix) === encoded ? id : encoded
}
