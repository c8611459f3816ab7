import ipaddr from 'ipaddr.js'
import { type Address, parseAddress, withoutMapping } from '#lib/networks.ts'

/**
 * Whether an address is on the public internet. Not public: private, loopback, link-local, shared
 * (CGNAT), multicast and reserved addresses, and IPv6 forms that embed an IPv4 address (mapped, NAT64,
 * 6to4, Teredo), which a network gateway may route into a private network.
 */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text)
  if (address === null || isMetadata(address)) return false
  if (address.range() !== 'unicast') return false
  return address instanceof ipaddr.IPv4 || address.match(globalUnicast, globalUnicastBits)
}

/** Whether an address is a cloud metadata service, which hands out credentials. */
export function isMetadataAddress(text: string): boolean {
  const address = parseAddress(text)
  return address !== null && isMetadata(address)
}

/** The address in a `URL.hostname`, without brackets; null for a name. */
export function addressOfHost(hostname: string): string | null {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return parseAddress(bare) === null ? null : bare
}

/** 2000::/3, the only range of IPv6 that is assigned for global unicast. */
const globalUnicast = ipaddr.IPv6.parse('2000::')
const globalUnicastBits = 3

/** In order: AWS, Google and others; AWS over IPv6; AWS containers; Alibaba; Oracle; Azure. */
const metadataAddresses = new Set(
  [
    '169.254.169.254',
    'fd00:ec2::254',
    '169.254.170.2',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
  ].map((text) => ipaddr.parse(text).toNormalizedString()),
)

function isMetadata(address: Address): boolean {
  const effective = withoutMapping(address)
  return metadataAddresses.has(effective.toNormalizedString()) || effective.range() === 'linkLocal'
}
