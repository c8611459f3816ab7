import ipaddr from 'ipaddr.js'

/**
 * Whether an address belongs to the public internet. Anything else is not: private, loopback,
 * link-local, shared (CGNAT), multicast, reserved, and IPv6 forms that carry an IPv4 address (mapped,
 * NAT64, 6to4, Teredo), since a gateway on the way may lead them into a private network.
 */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text)
  if (address === null || isMetadata(address)) return false
  if (address.range() !== 'unicast') return false
  return address instanceof ipaddr.IPv4 || address.match(globalUnicast, globalUnicastBits)
}

/** Whether an address is where clouds hand out credentials to whoever asks from the inside. */
export function isMetadataAddress(text: string): boolean {
  const address = parseAddress(text)
  return address !== null && isMetadata(address)
}

/** Whether a host, as `URL.hostname` spells it, is an address; its brackets are taken off. */
export function addressOfHost(hostname: string): string | null {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return parseAddress(bare) === null ? null : bare
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** 2000::/3, the only part of IPv6 that is given out for use across the internet. */
const globalUnicast = ipaddr.IPv6.parse('2000::')
const globalUnicastBits = 3

/** Of AWS, Google and others, of AWS over IPv6, of AWS containers, Alibaba, Oracle and Azure. */
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

/** An IPv4 address that is mapped into IPv6 counts as what it maps. */
function isMetadata(address: Address): boolean {
  const isMapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()
  const meant = isMapped ? address.toIPv4Address() : address
  return metadataAddresses.has(meant.toNormalizedString()) || meant.range() === 'linkLocal'
}

/** Strict notation alone; a URL parser has turned every other one into it before. */
function parseAddress(text: string): Address | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  return ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : null
}
