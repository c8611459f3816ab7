import { type Static, Type } from '@sinclair/typebox'
import { choice, section, text, whole } from '#config/keys.ts'

export const tlsKeys = {
  tls: section('TLS on the listen address; without `cert` and `key`, plain HTTP.', {
    cert: Type.Optional(
      text('PEM file with the certificate, followed by its intermediate certificates.', {
        env: 'SLUICE_TLS_CERT',
      }),
    ),
    key: Type.Optional(
      text('PEM file with the unencrypted private key.', { env: 'SLUICE_TLS_KEY' }),
    ),
    minVersion: choice('Lowest TLS version.', ['1.2', '1.3']),
    clientCa: Type.Optional(
      text(
        'PEM file with certificate authorities. Clients without a certificate of one of them cannot connect.',
      ),
    ),
    checkMs: whole('How often the files are checked for changes.', {
      default: 5_000,
      minimum: 100,
    }),
    expiryWarningDays: whole('Remaining validity at which the log warns once a day.', {
      default: 14,
      minimum: 0,
    }),
    hstsMaxAgeS: whole('`max-age` of `strict-transport-security`; 0: no such header.', {
      default: 0,
      minimum: 0,
    }),
  }),
}

export type TlsSettings = Static<(typeof tlsKeys)['tls']>

export function* tlsFaults({ tls }: { readonly tls: TlsSettings }): Generator<string> {
  const { cert, key, clientCa } = tls
  if (cert !== undefined && key === undefined) yield 'tls.key: required with tls.cert.'
  if (cert === undefined && key !== undefined) yield 'tls.cert: required with tls.key.'
  if (cert === undefined && clientCa !== undefined) yield 'tls.client_ca: requires tls.cert.'
}
