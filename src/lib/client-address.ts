import { canonicalAddress, createNetworks } from './networks.ts'
import { setBounded } from './single-flight.ts'

/** The part of a server that knows the other end of a connection. */
export type Peers = { requestIP(request: Request): { readonly address: string } | null }

/** The address of this moment, for a connection whose request ends with its upgrade. */
export function rememberPeer(request: Request, peers: Peers | null): Peers {
  const peer = peers?.requestIP(request) ?? null
  return { requestIP: () => peer }
}

/** Who sent a request, and to which origin, where proxies stand between. */
export type ClientAddresses = {
  /** In one notation; null without a connection. */
  of(request: Request, peers: Peers | null): string | null
  /** The scheme and host that the client used, if a trusted proxy says so; otherwise those of the URL. */
  originOf(request: Request, peers: Peers | null): string
}

/** More hops than any chain of proxies has. */
const hopsMax = 32
const peersKnownMax = 1_000

/**
 * Headers of proxies count only if the connection is one of a trusted proxy. Each proxy appends the
 * address that it sees, so the client is the last address that is not a trusted proxy: whatever stands
 * before it may have been invented by the client.
 */
export function createClientAddresses(trustedProxies: readonly string[]): ClientAddresses {
  const trusted = createNetworks(trustedProxies)
  /** By the notation of the server: most requests come from few peers, and parsing takes a microsecond. */
  const known = new Map<string, string | null>()
  const peerOf = (request: Request, peers: Peers | null) => {
    const peer = peers?.requestIP(request) ?? null
    if (peer === null) return null
    const cached = known.get(peer.address)
    if (cached !== undefined) return cached
    const address = canonicalAddress(peer.address)
    setBounded(known, peer.address, address, peersKnownMax)
    return address
  }
  const isTrusted = (address: string | null): address is string =>
    trustedProxies.length > 0 && address !== null && trusted.includes(address)

  return {
    of(request, peers) {
      const peer = peerOf(request, peers)
      if (!isTrusted(peer)) return peer
      let client = peer
      for (const hop of hopsOf(request.headers).slice(-hopsMax).reverse()) {
        const address = addressOfHop(hop)
        // A proxy that hides addresses, or garbage: the proxy that reported it is the last one known.
        if (address === null) return client
        client = address
        if (!isTrusted(client)) return client
      }
      return client
    },
    originOf(request, peers) {
      const url = new URL(request.url)
      if (!isTrusted(peerOf(request, peers))) return url.origin
      const { headers } = request
      const protocol = lastOf(headers.get('x-forwarded-proto'))?.toLowerCase()
      const host = lastOf(headers.get('x-forwarded-host'))
      const scheme = protocol === 'http' || protocol === 'https' ? `${protocol}:` : url.protocol
      try {
        return new URL(`${scheme}//${host === null || !hostForm.test(host) ? url.host : host}`)
          .origin
      } catch {
        return url.origin
      }
    },
  }
}

const hostForm = /^[\w.:[\]-]+$/

function lastOf(list: string | null): string | null {
  return list?.split(',').at(-1)?.trim() || null
}

/** `X-Forwarded-For`, or `Forwarded` (RFC 7239) without it; the proxy nearest to us is the last. */
function hopsOf(headers: Headers): string[] {
  const list = headers.get('x-forwarded-for')
  if (list !== null) return list.split(',').map((hop) => hop.trim())
  const forwarded = headers.get('forwarded')
  if (forwarded === null) return []
  return forwarded.split(',').map((element) => /(?:^|;)\s*for="?([^;"]*)/i.exec(element)?.[1] ?? '')
}

/** Without port and brackets: `192.0.2.7:4711`, `[2001:db8::7]:4711`. */
function addressOfHop(hop: string): string | null {
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
  return canonicalAddress(bare.trim())
}
