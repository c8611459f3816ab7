import ipaddr from 'ipaddr.js'

export type Address = ipaddr.IPv4 | ipaddr.IPv6

/** IPv4 addresses inside of `::/96`, which the parser takes for mapped ones. */
const obsoleteForm = /^::\d+\./

/** Without a zone. Accepts strict notation only: URL parsers normalise all others. */
export function parseAddress(text: string): Address | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  if (text.includes('%') || obsoleteForm.test(text)) return null
  return ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : null
}

/** A mapped IPv4 address counts as that address. */
export function withoutMapping(address: Address): Address {
  const isMapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()
  return isMapped ? address.toIPv4Address() : address
}

/** One notation for each address, without a zone; null for anything else. */
export function canonicalAddress(text: string): string | null {
  const zone = text.indexOf('%')
  const address = parseAddress(zone === -1 ? text : text.slice(0, zone))
  return address === null ? null : withoutMapping(address).toString()
}

/** Ranges of addresses. */
export type Networks = {
  includes(address: string): boolean
}

type Network = { readonly base: Address; readonly bits: number }

/** What is wrong with the notation of a network, to follow its name in a sentence; null: nothing. */
export function networkFault(text: string): string | null {
  const network = parseNetwork(text)
  if (network === null) {
    return 'must be an address or a network such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32'
  }
  const { base, bits } = network
  const isBase = base
    .toByteArray()
    .every((byte, at) => (byte & ~maskOf(bits - 8 * at) & 0xff) === 0)
  return isBase ? null : 'has address bits beyond its prefix length'
}

/** The addresses of any of these networks, each of which has no fault. */
export function createNetworks(texts: readonly string[]): Networks {
  const networks = texts.map(parseNetwork).filter((network) => network !== null)
  return {
    includes(text) {
      const address = parseAddress(text)
      if (address === null) return false
      const effective = withoutMapping(address)
      return networks.some(({ base, bits }) => {
        if (base instanceof ipaddr.IPv4) {
          return effective instanceof ipaddr.IPv4 && effective.match(base, bits)
        }
        return effective instanceof ipaddr.IPv6 && effective.match(base, bits)
      })
    },
  }
}

const [bitsOfV4, bitsOfV6] = [32, 128]
const mappedBits = bitsOfV6 - bitsOfV4

/** A single address is a network of one. */
function parseNetwork(text: string): Network | null {
  const [addressText = '', bitsText, ...rest] = text.split('/')
  const address = parseAddress(addressText)
  if (address === null || rest.length > 0) return null
  const bitsMax = address instanceof ipaddr.IPv4 ? bitsOfV4 : bitsOfV6
  if (bitsText !== undefined && !/^(0|[1-9]\d{0,2})$/.test(bitsText)) return null
  const bits = bitsText === undefined ? bitsMax : Number(bitsText)
  if (bits > bitsMax) return null
  const base = withoutMapping(address)
  if (base === address) return { base, bits }
  return bits < mappedBits ? null : { base, bits: bits - mappedBits }
}

/** The mask of one byte of which this many bits belong to the prefix. */
function maskOf(bits: number): number {
  if (bits >= 8) return 0xff
  return bits <= 0 ? 0 : (0xff << (8 - bits)) & 0xff
}
