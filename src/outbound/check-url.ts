import { AppError } from '#lib/errors.ts'
import { orAfter } from '#lib/time-limit.ts'
import { addressOfHost, isMetadataAddress, isPublicAddress } from './addresses.ts'
import { matchesHost } from './host-patterns.ts'
import type { Resolve } from './resolve.ts'

export type UrlPolicy = {
  /** The host patterns that may be asked; see `matchesHost`. */
  readonly hosts: readonly string[]
  /** The ports that may be asked; empty: every port. */
  readonly portsAllowed: readonly number[]
  /**
   * Whether whoever named the URL may reach what is not public, which an administrator may: plain
   * http and private addresses are fine then. Metadata addresses never are.
   */
  readonly private: boolean
}

/** A host that takes longer to be resolved is not there. */
const resolveMs = 5_000

/**
 * Where a URL leads: the addresses that it may be fetched from. Throws `invalid_request` with a
 * sentence that begins with `what`, such as "The server URL", and tells nothing of our network.
 */
export async function checkUrl(
  url: URL,
  policy: UrlPolicy,
  { what, resolve }: { what: string; resolve: Resolve },
): Promise<readonly string[]> {
  const refuse = (why: string) => new AppError('invalid_request', `${what} ${why}.`)
  const isHttp = url.protocol === 'http:' && policy.private
  if (url.protocol !== 'https:' && !isHttp) throw refuse('must begin with https://')
  if (url.username !== '' || url.password !== '') throw refuse('must not hold credentials')
  if (!matchesHost(url.hostname, policy.hosts))
    throw refuse('names a host that is not allowed here')
  if (policy.portsAllowed.length > 0 && !policy.portsAllowed.includes(portOf(url))) {
    throw refuse('names a port that is not allowed here')
  }
  const addresses = await addressesOf(url.hostname, resolve)
  if (addresses.length === 0) throw refuse('names a host that cannot be found')
  const isAllowed = policy.private ? isNoMetadata : isPublicAddress
  // One address that is not public is enough: whoever set it there means it to be used.
  if (!addresses.every(isAllowed)) throw refuse('leads to an address that is not public')
  return addresses
}

export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

function isNoMetadata(address: string): boolean {
  return !isMetadataAddress(address)
}

async function addressesOf(hostname: string, resolve: Resolve): Promise<readonly string[]> {
  const address = addressOfHost(hostname)
  if (address !== null) return [address]
  const found = resolve(hostname).catch(() => [])
  return orAfter(found, resolveMs, [])
}
