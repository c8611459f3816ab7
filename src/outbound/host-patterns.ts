/**
 * Whether a host name is among the patterns: `api.example.com` is that name alone, `*.example.com`
 * every name below it, `*` every name.
 */
export function matchesHost(hostname: string, patterns: readonly string[]): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  return patterns.some((pattern) => {
    const wanted = pattern.toLowerCase()
    if (wanted === '*') return true
    if (wanted.startsWith('*.')) return name.endsWith(wanted.slice(1))
    return name === wanted
  })
}
