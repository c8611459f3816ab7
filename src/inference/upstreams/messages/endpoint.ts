import type { Upstream } from '#inference/upstream.ts'

/** The version of the protocol in which our own requests are written. */
const ownVersion = '2023-06-01'

/** Some give the base with the version in it, as other protocols have it, and some without. */
export function pathOf(upstream: Upstream, resource: string): string {
  return (upstream.baseUrl.endsWith('/v1') ? '' : '/v1') + resource
}

/**
 * The headers of a request. What the caller of the same protocol says of version and features holds
 * for its body; anything else that the configuration sets goes before the caller's word.
 */
export function headersFor(
  upstream: Upstream,
  accept: string,
  callers: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const configured = Object.fromEntries(
    Object.entries(upstream.headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const version = callers['anthropic-version'] ?? configured['anthropic-version'] ?? ownVersion
  const betas = [configured['anthropic-beta'], callers['anthropic-beta']]
  const beta = betas.filter((names) => names !== undefined && names !== '').join(',')
  return {
    ...callers,
    ...credential(upstream),
    ...configured,
    'anthropic-version': version,
    ...(beta === '' ? {} : { 'anthropic-beta': beta }),
    accept,
    'content-type': 'application/json',
  }
}

function credential({ key, quirks }: Upstream): Record<string, string> {
  if (key === undefined) return {}
  return quirks.keyHeader === 'x-api-key'
    ? { 'x-api-key': key }
    : { authorization: `Bearer ${key}` }
}
