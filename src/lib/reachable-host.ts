/** The URL under which a program on this machine reaches the server, without a path. */
export function localUrl({ host, port, tls }: ListenAddress): string {
  const scheme = tls.cert === undefined ? 'http' : 'https'
  return `${scheme}://${reachableHost(host)}:${port}`
}

/** The server is on this machine, and its certificate is for the names that clients use. */
export const toLocalServer = { tls: { rejectUnauthorized: false } } as const

export type ListenAddress = {
  readonly host: string
  readonly port: number
  readonly tls: { readonly cert?: string }
}

/** The host of a URL under which a program on this machine reaches a listen address. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
