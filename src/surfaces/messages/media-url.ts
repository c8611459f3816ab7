import { addressOfHost, isPublicAddress } from '#outbound/addresses.ts'
import { badField } from './read-object.ts'

/** Names that mean this machine or its network, wherever they are asked for. */
const localNames = /(^|\.)(localhost|local|internal|lan|home\.arpa)$/

/**
 * Refuses the URL of an image or a document that no upstream should be sent to fetch. Nothing is
 * resolved here: what the upstream fetches it resolves itself, and we cannot do that for it.
 */
export function checkMediaUrl(url: string, path: string): void {
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw badField(path, 'must be a URL that begins with https:// or http://')
  }
  const address = addressOfHost(parsed.hostname)
  const isPublic = address === null ? isPublicName(parsed.hostname) : isPublicAddress(address)
  if (!isPublic) throw badField(path, 'leads to an address that is not public')
}

function isPublicName(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  return name.includes('.') && !localNames.test(name)
}
