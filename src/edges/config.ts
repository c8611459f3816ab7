import { type Static, Type } from '@sinclair/typebox'
import { flag, section, whole } from '#config/keys.ts'
import { networkFault } from '#lib/networks.ts'

export const edgeKeys = {
  trustedProxies: Type.Array(Type.String(), {
    description:
      'Addresses and networks of the proxies in front, such as `10.0.0.0/8`. Only from them, `X-Forwarded-For` (or `Forwarded`) names the client, and `X-Forwarded-Proto` and `-Host` the address that it used.',
    default: [],
  }),
  cors: section('Pages of other origins that may use the API; none by default.', {
    origins: Type.Array(Type.String(), {
      description: 'Origins such as `https://chat.example.com`, or `https://*.example.com`.',
      default: [],
    }),
    credentials: flag(
      'Whether browsers may send cookies and client certificates for these pages.',
      false,
    ),
    maxAgeS: whole('How long browsers may keep the result of a preflight request.', {
      default: 600,
      minimum: 0,
    }),
  }),
}

export type CorsSettings = Static<(typeof edgeKeys)['cors']>

const originForm = /^https?:\/\/(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:\d+)?$/

export function* edgeFaults({
  trustedProxies,
  cors,
}: {
  readonly trustedProxies: readonly string[]
  readonly cors: CorsSettings
}): Generator<string> {
  for (const [at, text] of trustedProxies.entries()) {
    const fault = networkFault(text)
    if (fault !== null) yield `trusted_proxies.${at}: "${text}" ${fault}.`
  }
  for (const [at, origin] of cors.origins.entries()) {
    if (!originForm.test(origin)) {
      yield `cors.origins.${at}: "${origin}" must be an origin such as https://chat.example.com or https://*.example.com, in lower case and without a path.`
    }
  }
}
