import type { Config } from '#config/schema.ts'

/**
 * Headers of every response that does not set its own: no guessing of media types, no address of ours
 * in requests that a page makes elsewhere, and no use of a response by pages of other origins.
 */
export function securityHeaders({ tls }: Pick<Config, 'tls'>): Readonly<Record<string, string>> {
  const isStrict = tls.cert !== undefined && tls.hstsMaxAgeS > 0
  return Object.freeze({
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    ...(isStrict ? { 'strict-transport-security': `max-age=${tls.hstsMaxAgeS}` } : {}),
  })
}
