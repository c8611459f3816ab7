import { addressOfHost, isPublicAddress } from '#outbound/addresses.ts'

/** Host names that mean the upstream's own machine or network. */
const localHostPattern = /(^|\.)(localhost|localdomain|local|internal|lan|home\.arpa)$/

/** Characters that URL parsers disagree on: an upstream may read another host than we do. */
const ambiguousAuthorityPattern = /^[a-z]+:\/*[^/?#]*[\s\\]/i
const controlCharPattern = /\p{Cc}/u

/**
 * Classifies the http or https URL of an image or file that an upstream will fetch. The host is not
 * resolved: the upstream resolves it again, and may get another answer.
 */
export function classifyMediaUrl(url: string): 'public' | 'private' | 'malformed' {
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return 'malformed'
  if (ambiguousAuthorityPattern.test(url) || controlCharPattern.test(url)) return 'malformed'
  const { hostname } = parsed
  const address = addressOfHost(hostname)
  const isPublic = address === null ? isPublicHostname(hostname) : isPublicAddress(address)
  return isPublic ? 'public' : 'private'
}

/** A name without a dot is resolved in the local network. */
function isPublicHostname(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.+$/, '')
  return name.includes('.') && !localHostPattern.test(name)
}
