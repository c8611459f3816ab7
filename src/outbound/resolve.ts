import { lookup } from 'node:dns/promises'

/** All addresses of a host name, in the order to try them. */
export type Resolve = (hostname: string) => Promise<readonly string[]>

/** Resolves as the operating system does, including its hosts file; IPv4 first. */
export const resolveHost: Resolve = async (hostname) => {
  const found = await lookup(hostname, { all: true })
  return found.toSorted((a, b) => a.family - b.family).map(({ address }) => address)
}
