import { AppError } from '#lib/errors.ts'
import { orAfter } from '#lib/time-limit.ts'
import { addressOfHost, isMetadataAddress, isPublicAddress } from './addresses.ts'
import type { Resolve } from './resolve.ts'

export type UrlPolicy = {
  /** Allowed host patterns; see `matchesHost`. */
  readonly hosts: readonly string[]
  /** Allowed ports; empty: every port. */
  readonly portsAllowed: readonly number[]
  /**
   * Whether plain http and private addresses are allowed, as for URLs set by administrators. Metadata
   * addresses are never allowed.
   */
  readonly private: boolean
}

/** A host that takes longer to resolve counts as unknown. */
const resolveMs = 5_000

/**
 * The addresses that a URL may be fetched from. Throws `invalid_request` with a sentence that starts
 * with `what`, such as "The server URL", and reveals nothing about our network.
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
  // A single private address is enough to refuse the host: it may be the one that is used.
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

/**
 * Whether a host name matches a pattern: `api.example.com` is that name only, `*.example.com` all
 * names below it, `*` every name.
 */
export function matchesHost(hostname: string, patterns: readonly string[]): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  return patterns.some((pattern) => {
    const normalised = pattern.toLowerCase()
    if (normalised === '*') return true
    if (normalised.startsWith('*.')) return name.endsWith(normalised.slice(1))
    return name === normalised
  })
}
