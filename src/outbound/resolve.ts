import { lookup } from 'node:dns/promises'

/** Every address of a host name, in the order in which they are to be tried. */
export type Resolve = (hostname: string) => Promise<readonly string[]>

/** As the machine resolves names, its hosts file included; IPv4 first. */
export const resolveHost: Resolve = async (hostname) => {
  const found = await lookup(hostname, { all: true })
  return found.toSorted((a, b) => a.family - b.family).map(({ address }) => address)
}
