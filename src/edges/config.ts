import { Type } from '@sinclair/typebox'
import { networkFault } from '#lib/networks.ts'

export const edgeKeys = {
  trustedProxies: Type.Array(Type.String(), {
    description:
      'Addresses and networks of the proxies in front, such as `10.0.0.0/8`. Only from them, `X-Forwarded-For` (or `Forwarded`) names the client, and `X-Forwarded-Proto` and `-Host` the address that it used.',
    default: [],
  }),
}

export function* edgeFaults({
  trustedProxies,
}: {
  readonly trustedProxies: readonly string[]
}): Generator<string> {
  for (const [at, text] of trustedProxies.entries()) {
    const fault = networkFault(text)
    if (fault !== null) yield `trusted_proxies.${at}: "${text}" ${fault}.`
  }
}
